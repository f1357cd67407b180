"""How requests and answers end: well, with a failure, or with another attempt."""
