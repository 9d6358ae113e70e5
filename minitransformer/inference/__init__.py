"""What a trained model is used for: to translate, to generate, to fill blanks, to label."""
