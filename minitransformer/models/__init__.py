"""Whole models, one file each, built of the layers."""
