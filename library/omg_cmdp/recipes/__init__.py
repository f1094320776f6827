"""Recipes: how objects were made, kept with them and written into files."""
