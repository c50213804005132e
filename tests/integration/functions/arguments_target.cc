/* SPDX-License-Identifier: MIT */
/* Arguments of C++ functions: `this`, references, base classes, classes that are handed over by
 * address, templates. What they are is in arguments.sh. */
#include <cstdint>
#include <memory>
#include <string>

#define USED(x) __asm__ volatile("" : : "r"(x) : "memory")
#define TRACED __attribute__((noinline))

namespace bank
{
enum class Currency : uint8_t { euro = 1, yen = 200 };

struct Named {
	std::string name;
	int id;
};
struct Audited {
	int changes;
	int id; /* of the base class: the one of Account hides it */
};

class Account : public Named, public Audited
{
	int64_t balance;
	Currency currency;

      public:
	int id;
	static int count;
	Account(const char *name, int id, Currency currency)
	    : Named{ name, id }, Audited{ 0, -id }, balance(0), currency(currency), id(id + 1000)
	{
	}
	TRACED int64_t deposit(int64_t amount, const std::string &reason, Currency in)
	{
		USED(&reason);
		USED(in);
		changes++;
		return balance += amount;
	}
	virtual ~Account() = default;
};
int Account::count;

template <typename T> struct Pair {
	T first, second;
};
template <typename T> TRACED T sum(Pair<T> &pair)
{
	USED(&pair);
	return pair.first + pair.second;
}
TRACED void give(Named named, int behind)
{
	USED(&named);
	USED(behind);
}
TRACED long take(std::unique_ptr<Account> owned, int behind)
{
	USED(&owned);
	USED(behind);
	return behind;
}
} // namespace bank

int main()
{
	bank::Account a("ada", 1, bank::Currency::euro), b("grace", 2, bank::Currency::yen);
	bank::Pair<short> pair = { -3, 1000 };
	std::string reason = "wages";
	int64_t total = 0;
	for (int i = 0; i < 500; i++) {
		USED(&a);
		USED(&b);
		USED(&pair);
		total += a.deposit(i, reason, bank::Currency::euro);
		total += b.deposit(-i, reason, bank::Currency::yen);
		bank::sum(pair);
		bank::take(nullptr, i);
		bank::give({ "x", 2 * i }, i);
	}
	return total != 0;
}
