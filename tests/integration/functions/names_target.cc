// SPDX-License-Identifier: MIT
// Functions whose names in the source are not their symbols': each is called as often as its line
// in main() says. No two have the same code, which the compiler would merge.
#include <cstdio>
#include <cstdlib>
#include <string>

#define traced __attribute__((noinline, noclone))

volatile long sink;

namespace shop
{
struct Cart {
	long total = 0;
	traced Cart()
	{
		sink = sink + 1;
	}
	traced ~Cart()
	{
		sink = sink - 1;
	}
	traced void add(int price)
	{
		sink = total += price;
	}
	traced void add(double price)
	{
		sink = total += (long)price;
	}
	traced void add(const std::string &name, int price)
	{
		sink = total += price + (long)name.size();
	}
	traced long size() const
	{
		return sink + total;
	}
	traced bool operator<(const Cart &other) const
	{
		return sink + total < other.total;
	}
	traced operator long() const
	{
		return sink + total;
	}
};
traced bool operator!(const Cart &cart)
{
	return sink == (long)&cart;
}
traced bool operator!=(const Cart &a, const Cart &b)
{
	return sink != &a - &b;
}
template <typename T> traced long sum(T a, T b)
{
	sink = (long)(a + b);
	return sink;
}
traced std::string tagged(int n)
{
	sink = n;
	return std::string(40, 'x');
}
namespace
{
traced void hidden(int n)
{
	sink = n + 1;
}
} // namespace
} // namespace shop
traced void plain(int n)
{
	sink = n + 2;
}
extern "C" traced void both(int n)
{
	sink = n + 3;
}
namespace other
{
traced void both(int n)
{
	sink = n + 4;
}
} // namespace other

int main()
{
	std::string name = "pear";
	for (int i = 0; i < 10; i++) {
		shop::Cart cart, second; // 20 of each
		for (int k = 0; k < 3; k++)
			cart.add(k); // 30
		cart.add(1.5);       // 10
		for (int k = 0; k < 2; k++)
			cart.add(name, k);                         // 20
		sink = cart.size();                                // 10
		sink = cart < second;                              // 10
		sink = (long)cart;                                 // 10
		sink = (cart != second) + !cart + !second;         // 10, 20
		shop::sum(1, 2);                                   // 10
		shop::sum(1.5, 2.5), shop::sum(1.0, 2.0);          // 20
		shop::tagged(1), shop::tagged(2), shop::tagged(3); // 30
		shop::hidden(1);                                   // 10
		plain(1), plain(2);                                // 20
		both(1), other::both(1), other::both(2);           // 10 and 20
	}
	return 0;
}
