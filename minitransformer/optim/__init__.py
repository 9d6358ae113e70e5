"""What changes the parameters: optimizers, the clipping of gradients, schedules of the rate."""
