"""What a training run is made of, typed, and read so that every error explains itself.

What a config means to an algorithm lives in ``learning``.
Start with ``model.py``; ``loading.py`` reads files and overrides.
"""
