"""Every layer, loss and model of the package, each with inputs to check its gradients on."""

from minitransformer.cases.layers import LAYERS
from minitransformer.cases.losses import LOSSES
from minitransformer.cases.models import MODELS
from minitransformer.cases.pictures import PICTURES

CASES = [*LAYERS, *LOSSES, *MODELS, *PICTURES]
