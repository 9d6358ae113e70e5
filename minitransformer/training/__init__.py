"""How a model is trained: recipes, steps, epochs, the loop around them, progress."""
