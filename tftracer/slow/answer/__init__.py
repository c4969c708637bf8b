"""What is said of slow steps: ranking, texts, flame graphs."""
