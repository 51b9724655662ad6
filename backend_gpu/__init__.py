"""The GPU backend: programs and plans on real hardware. It never imports the engine."""
