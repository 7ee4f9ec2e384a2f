"""Programs on replicas, brought to a mesh of devices (DTensor)."""
