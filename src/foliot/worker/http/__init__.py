"""HTTP callbacks: where they may go, how they are sent, what their answers mean."""
