"""Gymnasium and PettingZoo faces of the game."""
