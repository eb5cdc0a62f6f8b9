"""Agents: things that choose actions, and how they are trained and judged."""
