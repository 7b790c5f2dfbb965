! SPDX-License-Identifier: Apache-2.0
!
! Marks from Fortran: the functions of libsonde_record, declared here as they are in sonde/record.h.
! Texts end with c_null_char.
!
!     sonde run -o primes.sonde -- ./primes-fortran && sonde report primes.sonde
module sonde
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_null_char
    implicit none

    interface
        subroutine sonde_begin(name) bind(c)
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine sonde_end() bind(c)
        end subroutine
        subroutine sonde_step() bind(c)
        end subroutine
        subroutine sonde_mark(name) bind(c)
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine sonde_counter(name, value) bind(c)
            import :: c_char, c_double
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), value :: value
        end subroutine
        subroutine sonde_flops(count) bind(c)
            import :: c_double
            real(c_double), value :: count
        end subroutine
    end interface
end module

program primes
    use sonde
    implicit none
    integer :: step, found

    do step = 1, 3
        call sonde_step()
        found = count_primes(step * 10000)
        call sonde_counter("primes" // c_null_char, real(found, c_double))
        print '(i0, a, i0)', found, " primes below ", step * 10000
    end do
    call sonde_mark("done" // c_null_char)

contains

    subroutine sieve(is_prime)
        logical, intent(out) :: is_prime(2:)
        integer :: i, crossed

        call sonde_begin("sieve" // c_null_char)
        is_prime = .true.
        crossed = 0
        do i = 2, ubound(is_prime, 1)
            if (.not. is_prime(i) .or. i > ubound(is_prime, 1) / i) cycle
            is_prime(i * i::i) = .false.
            crossed = crossed + size(is_prime(i * i::i))
        end do
        call sonde_flops(real(crossed, c_double))
        call sonde_end()
    end subroutine

    integer function count_primes(limit)
        integer, intent(in) :: limit
        logical, allocatable :: is_prime(:)

        call sonde_begin("count" // c_null_char)
        allocate (is_prime(2:limit - 1))
        call sieve(is_prime)
        count_primes = count(is_prime)
        call sonde_end()
    end function
end program
