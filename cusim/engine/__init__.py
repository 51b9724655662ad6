"""The simulator: SMs, dispatcher, streams, host and semaphores in a SimPy environment."""
