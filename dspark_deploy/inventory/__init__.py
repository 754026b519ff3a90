"""The inventory: who the two nodes of one pair are and how they are wired. One YAML file a pair."""

from dspark_deploy.inventory.host import HostSpec, parse_host
from dspark_deploy.inventory.load import load_inventory
from dspark_deploy.inventory.model import Api, Fabric, Inventory, Node, subnet_of

__all__ = ["Api", "Fabric", "HostSpec", "Inventory", "Node", "load_inventory", "parse_host", "subnet_of"]
