"""The walls around tools' processes, and the one way into the network through them."""
