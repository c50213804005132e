/* SPDX-License-Identifier: MIT */
/* Exceptions that pass through calls of this library, and through what it calls. */
extern "C" {
void own_throw();
int own_pass(void (*throws)());
int own_catch(int (*pass)(void (*)()));
}

__attribute__((noinline)) void own_throw()
{
	throw 7;
}

__attribute__((noinline)) int own_pass(void (*throws)())
{
	throws();
	return 1;
}

__attribute__((noinline)) int own_catch(int (*pass)(void (*)()))
{
	try {
		return pass ? pass(own_throw) : own_pass(own_throw);
	} catch (int number) {
		return number;
	}
}
