! SPDX-License-Identifier: MIT
! An image from Fortran: how often each size up to 255 was asked for, the largest, and the mean of the last 16.
!
!     gfortran -O2 -fPIC -fno-plt -mgeneral-regs-only -mno-red-zone -fcf-protection=none -fno-asynchronous-unwind-tables \
!         -fomit-frame-pointer -c -o sizes.o examples/images/sizes.f90
!     as -o sizes_tables.o examples/images/sizes_tables.S
!     ld -shared -nostdlib -z now -z noexecstack --build-id=none -o sizes.fay sizes.o sizes_tables.o
!     fay verify sizes.fay
subroutine probe(event, state, global) bind(c, name="probe")
	use, intrinsic :: iso_c_binding
	implicit none

	type, bind(c) :: fay_event              ! fay/event.h, as far as it is used
		integer(c_int64_t) :: arg(6)
	end type

	type, bind(c) :: fay_state              ! LOCAL; sizes_tables.S describes it
		integer(c_int64_t) :: calls
		integer(c_int64_t) :: largest
		integer(c_int64_t) :: mean
		integer(c_int64_t) :: recent(0:15)
		integer(c_int64_t) :: seen(0:255)
	end type

	type(fay_event), intent(in) :: event
	type(fay_state), intent(inout) :: state
	integer(c_int64_t), intent(inout) :: global
	integer(c_int64_t) :: size, total
	integer :: i

	size = iand(event%arg(3), 1048575_c_int64_t)
	state%recent(iand(state%calls, 15_c_int64_t)) = size
	state%calls = state%calls + 1
	state%largest = max(state%largest, size)
	if (size <= 255) state%seen(size) = state%seen(size) + 1
	total = 0
	do i = 0, 15
		total = total + state%recent(i)
	end do
	state%mean = total / 16
end subroutine
