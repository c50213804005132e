/* SPDX-License-Identifier: MIT */
/*
 * The kernel's headers that have commands of ioctl. When Fay is built, ioctls.def is made of the
 * macros in them (query/CMakeLists.txt).
 */
#ifndef FAY_QUERY_SOURCES_IOCTL_HEADERS_H
#define FAY_QUERY_SOURCES_IOCTL_HEADERS_H

#if __has_include(<asm/ioctls.h>)
#include <asm/ioctls.h>
#endif
#if __has_include(<linux/types.h>)
#include <linux/types.h>
#endif
#if __has_include(<linux/auto_fs.h>)
#include <linux/auto_fs.h>
#endif
#if __has_include(<linux/blkpg.h>)
#include <linux/blkpg.h>
#endif
#if __has_include(<linux/blkzoned.h>)
#include <linux/blkzoned.h>
#endif
#if __has_include(<linux/btrfs.h>)
#include <linux/btrfs.h>
#endif
#if __has_include(<linux/cdrom.h>)
#include <linux/cdrom.h>
#endif
#if __has_include(<linux/dm-ioctl.h>)
#include <linux/dm-ioctl.h>
#endif
#if __has_include(<linux/dma-buf.h>)
#include <linux/dma-buf.h>
#endif
#if __has_include(<linux/dma-heap.h>)
#include <linux/dma-heap.h>
#endif
#if __has_include(<linux/fiemap.h>)
#include <linux/fiemap.h>
#endif
#if __has_include(<linux/fs.h>)
#include <linux/fs.h>
#endif
#if __has_include(<linux/fscrypt.h>)
#include <linux/fscrypt.h>
#endif
#if __has_include(<linux/fsverity.h>)
#include <linux/fsverity.h>
#endif
#if __has_include(<linux/fuse.h>)
#include <linux/fuse.h>
#endif
#if __has_include(<linux/gpio.h>)
#include <linux/gpio.h>
#endif
#if __has_include(<linux/hdreg.h>)
#include <linux/hdreg.h>
#endif
#if __has_include(<linux/hidraw.h>)
#include <linux/hidraw.h>
#endif
#if __has_include(<linux/i2c-dev.h>)
#include <linux/i2c-dev.h>
#endif
#if __has_include(<linux/if_tun.h>)
#include <linux/if_tun.h>
#endif
#if __has_include(<linux/kd.h>)
#include <linux/kd.h>
#endif
#if __has_include(<linux/kvm.h>)
#include <linux/kvm.h>
#endif
#if __has_include(<linux/loop.h>)
#include <linux/loop.h>
#endif
#if __has_include(<linux/nbd.h>)
#include <linux/nbd.h>
#endif
#if __has_include(<linux/nsfs.h>)
#include <linux/nsfs.h>
#endif
#if __has_include(<linux/perf_event.h>)
#include <linux/perf_event.h>
#endif
#if __has_include(<linux/ppp-ioctl.h>)
#include <linux/ppp-ioctl.h>
#endif
#if __has_include(<linux/pps.h>)
#include <linux/pps.h>
#endif
#if __has_include(<linux/ptp_clock.h>)
#include <linux/ptp_clock.h>
#endif
#if __has_include(<linux/random.h>)
#include <linux/random.h>
#endif
#if __has_include(<linux/rtc.h>)
#include <linux/rtc.h>
#endif
#if __has_include(<linux/seccomp.h>)
#include <linux/seccomp.h>
#endif
#if __has_include(<linux/sockios.h>)
#include <linux/sockios.h>
#endif
#if __has_include(<linux/spi/spidev.h>)
#include <linux/spi/spidev.h>
#endif
#if __has_include(<linux/sync_file.h>)
#include <linux/sync_file.h>
#endif
#if __has_include(<linux/udmabuf.h>)
#include <linux/udmabuf.h>
#endif
#if __has_include(<linux/uinput.h>)
#include <linux/uinput.h>
#endif
#if __has_include(<linux/usbdevice_fs.h>)
#include <linux/usbdevice_fs.h>
#endif
#if __has_include(<linux/userfaultfd.h>)
#include <linux/userfaultfd.h>
#endif
#if __has_include(<linux/vfio.h>)
#include <linux/vfio.h>
#endif
#if __has_include(<linux/vhost.h>)
#include <linux/vhost.h>
#endif
#if __has_include(<linux/videodev2.h>)
#include <linux/videodev2.h>
#endif
#if __has_include(<linux/vt.h>)
#include <linux/vt.h>
#endif
#if __has_include(<linux/watchdog.h>)
#include <linux/watchdog.h>
#endif
#if __has_include(<mtd/mtd-abi.h>)
#include <mtd/mtd-abi.h>
#endif
#if __has_include(<scsi/sg.h>)
#include <scsi/sg.h>
#endif

#endif
