"""Runs emitted kernels on an adapter, to check, measure and demonstrate them; hosts bring their own runtime."""

from qgen.runtime.device import Device, TimedRun
from qgen.runtime.opening import DeviceInfo, list_devices, open_device

__all__ = ["Device", "DeviceInfo", "TimedRun", "list_devices", "open_device"]
