"""Write the Lagrangian, get the motion."""
