"""From a recipe to a trainer: data, vocabulary, model, task and run folder put together."""

from dataclasses import asdict

from minitransformer.checkpoint.binding import differing, fingerprint
from minitransformer.data.corpus import CorpusError, clean_for_training, read_parallel
from minitransformer.data.multi30k import load_multi30k
from minitransformer.data.toy import toy_corpus
from minitransformer.data.vocabulary import Vocabulary
from minitransformer.models.kinds import new_model
from minitransformer.training.recipe import DataConfig, Recipe, RecipeError
from minitransformer.training.task import task_class
from minitransformer.training.trainer import Trainer
from minitransformer.workers import default_shards

TEST_SPLITS = {"toy": "test", "multi30k": "test_2016_flickr", "files": "validation"}


def load_split(data, split, *, strict=True):
    """The pairs of ``"train"``, ``"validation"`` or a test split.

    Args:
        data: DataConfig.
        split: a split of the corpus.
        strict: as for :func:`read_parallel`.

    Raises:
        CorpusError: the corpus cannot be read.
        RecipeError: the recipe does not say where its files are.
        ValueError: the corpus has no such split or no such languages.
    """
    if data.corpus == "toy":
        return _load_toy(split, data.languages)
    if data.corpus == "multi30k":
        return load_multi30k(split, data.data_dir or None, data.languages)
    if data.languages != DataConfig.languages:
        raise RecipeError("corpus='files' has the languages of its files; leave out languages")
    files = {
        "train": (data.train_source, data.train_target),
        "validation": (data.validation_source, data.validation_target),
    }
    if split not in files:
        raise ValueError(f"there is no split {split!r}; choose one of {', '.join(files)}")
    if not all(files[split]):
        raise RecipeError(
            f"corpus='files' needs two text files: set {split}_source and {split}_target"
        )
    return read_parallel(*files[split], strict=strict)


def _load_toy(split, languages):
    if languages not in ("de-en", "en-de"):
        raise ValueError(f"languages={languages!r}; the toy corpus has 'de-en' and 'en-de'")
    corpus = toy_corpus()
    if split not in corpus:
        raise ValueError(
            f"the toy corpus has no split {split!r}; choose one of {', '.join(corpus)}"
        )
    if languages == "de-en":
        return corpus[split]
    return [(english, german) for german, english in corpus[split]]


def prepare(recipe, run, device, progress, own=None):
    """A Trainer for ``recipe`` in the RunFolder ``run``, new or with what is there already.

    Reports to ``progress`` what it reads, leaves out and learns. ``own`` is the OwnFile that stands
    in, of which the run keeps a copy.

    Raises:
        RecipeError, ValueError: fields of the recipe do not go together, or the folder holds a run
            of another recipe.
        CheckpointError: the folder holds something else than a run, or a run on other functions.
        CorpusError, VocabularyError: there is no corpus, or none to learn from.
        MissingLibraryError: there is no sentencepiece, or not what a validation needs.
    """
    if run.config.exists():
        run.require_kept(own)
    else:
        run.require_free()
    if not recipe.training.shards:  # noted in the run, because the sums depend on it
        recipe = recipe.with_value("shards", _shards(recipe, run, device))
    data, training = recipe.data, recipe.training
    recipe.longest_side()  # before any work, do batches and model make sense?
    new_task = task_class(recipe.model_config(data.vocabulary_size))
    new_task.require_libraries()
    pairs, cleaning = clean_for_training(load_split(data, "train", strict=False))
    progress.say(f"training data: {cleaning}")
    validation = load_split(data, "validation")
    if not validation:
        raise CorpusError("there are no validation pairs; give some, held out of training")

    texts = {"training": fingerprint(pairs), "validation": fingerprint(validation)}
    vocabulary = _vocabulary(recipe, run, pairs, texts)
    config = recipe.model_config(len(vocabulary))
    model = new_model(config, training.seed, device=device)
    progress.say(f"model: {model.num_parameters():,} parameters on {device}")

    task = new_task(recipe, vocabulary, pairs, validation, progress)
    run.create()
    if not run.config.exists():
        if own:
            run.save_own(own.content)
        run.save_vocabulary(vocabulary)
        run.save_config(config, recipe.as_dict())
    run.bind(recipe.identity(), texts)
    return Trainer(model, training, run, task, progress)


def _shards(recipe, run, device):
    """How many shards the run in the folder has, or how many a new one gets."""
    if run.config.exists():
        return Recipe.of_run(run).training.shards
    return default_shards(device, recipe.training.batch_tokens)


def _vocabulary(recipe, run, pairs, texts):
    """The vocabulary of the run in the folder, or one learned from ``pairs`` for a new run."""
    if not run.config.exists():
        learned_from = [text for pair in pairs for text in pair]
        return Vocabulary.train(learned_from, recipe.data.vocabulary_size)
    stored = Recipe.of_run(run)
    run.bind(stored.identity(), texts)
    run.require_bound()
    vocabulary = Vocabulary.load(run.vocabulary)
    config, _ = run.load_config()
    wanted = recipe.model_config(len(vocabulary))
    differences = [
        *differing(wanted.as_dict(), config.as_dict()),
        *differing(asdict(recipe.data), asdict(stored.data)),
        *differing(asdict(recipe.training), asdict(stored.training)),
    ]
    if differences:
        named = ", ".join(
            f"{name} is {then} there, and {here} here" for name, here, then in differences
        )
        raise RecipeError(
            f"{run.path} holds a run of another recipe: {named}; resume it with its own, which is "
            f"in {run.config.name}, or choose another folder"
        )
    return vocabulary
