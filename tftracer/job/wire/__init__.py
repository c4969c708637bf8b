"""What an agent and its hub say to each other, and how they prove that they belong to one job."""
