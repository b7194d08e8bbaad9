"""Seeded synthetic VAAs."""
