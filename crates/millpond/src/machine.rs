//! What machine this is: cores, quota, NUMA nodes.
