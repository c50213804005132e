/* SPDX-License-Identifier: MIT */
/*
 * The ELF side of the parser: from a hostile file to its sections with a meaning, their
 * addresses, and the helper slots. docs/probe-image.md is the specification.
 *
 * It believes neither view of an ELF file alone: every allocated section must be known by name, lie
 * in one PT_LOAD at the place that this maps, and overlap no other. Whatever would make a program
 * loader do more than map is refused.
 *
 * Nothing is allocated, nothing is copied but single headers and entries, each by check_entry().
 * Loops run over at most 32 segments, 256 sections, 256 dynamic entries, 64 slots, and names of 256
 * bytes; two of them nested at most.
 */
#include "parts.h"

#define MAX_ADDRESS ((uint64_t)1 << 46)
#define PAGE 4096
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Sections that may be allocated. First those with a meaning: their type, the flags that they must
 * have, the flags that they may have. Then those that linkers add and that say nothing about code;
 * `*` stands for any rest of a name. The last stands for all others.
 */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t flags, also;
} known[] = {
	[TEXT] = { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0 },
	[RODATA] = { ".rodata", SHT_PROGBITS, SHF_ALLOC, SHF_MERGE | SHF_STRINGS },
	[GOT] = { ".got", SHT_PROGBITS, SHF_ALLOC, SHF_WRITE },
	[RELA] = { ".rela.dyn", SHT_RELA, SHF_ALLOC, SHF_INFO_LINK },
	[DYNSYM] = { ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0 },
	[DYNSTR] = { ".dynstr", SHT_STRTAB, SHF_ALLOC, SHF_STRINGS },
	[DYNAMIC] = { ".dynamic", SHT_DYNAMIC, SHF_ALLOC, SHF_WRITE },
	[IMAGE] = { ".fay.image", SHT_PROGBITS, SHF_ALLOC, 0 },
	[PROBES] = { ".fay.probes", SHT_PROGBITS, SHF_ALLOC, 0 },
	[STATES] = { ".fay.state", SHT_PROGBITS, SHF_ALLOC, 0 },
	[COLUMNS] = { ".fay.columns", SHT_PROGBITS, SHF_ALLOC, 0 },
	[STRINGS] = { ".fay.strings", SHT_PROGBITS, SHF_ALLOC, SHF_MERGE | SHF_STRINGS },
	[LINES] = { ".fay.lines", SHT_PROGBITS, SHF_ALLOC, 0 },
	[CERTIFICATE] = { ".fay.certificate", SHT_PROGBITS, 0, 0 },
	[INTERFACE] = { FAY_EXTENSION_SECTION, SHT_PROGBITS, SHF_ALLOC, 0 },
	{ .name = ".hash" },
	{ .name = ".gnu.hash" },
	{ .name = ".gnu.version*" },
	{ .name = ".note.*" },
	{ .name = ".eh_frame" },
	{ .name = ".eh_frame_hdr" },
	{ .name = ".got.plt", .also = SHF_WRITE },
	{ .name = "*", .also = SHF_WRITE },
};

static bool among(const uint32_t *list, size_t count, uint64_t value)
{
	bool found = false;

	for (size_t i = 0; i < count; i++)
		found |= list[i] == value;
	return found;
}

/* A part of the file, with NULL for its bytes if they are not all there. */
static struct check_bytes part_at(struct check_file *f, uint64_t start, uint64_t at, uint64_t size)
{
	return (struct check_bytes){ start, size, check_span(&f->all, at, size) };
}

static bool read_header(struct check_file *f)
{
	static const uint8_t ident[] = "\177ELF\2\1\1"; /* 64 bits, little-endian, version 1 */
	Elf64_Ehdr *h = &f->header;
	const uint8_t *id = h->e_ident;
	bool there = check_entry(f, &f->all, 0, h, sizeof(*h));

	f->refusal.what = "ELF header";
	f->segments = part_at(f, 0, h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr));
	f->sections = part_at(f, 0, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr));
	return NEED(LIMIT, f->all.size <= FAY_IMAGE_MAX_FILE) && NEED(ELF, there) &&
	       NEED(ELF, !memcmp(id, ident, EI_OSABI) && h->e_version == EV_CURRENT) &&
	       NEED(ELF, id[EI_OSABI] == ELFOSABI_SYSV || id[EI_OSABI] == ELFOSABI_GNU) &&
	       NEED(ELF, h->e_machine == EM_X86_64 && h->e_type == ET_DYN && h->e_phnum) &&
	       NEED(ELF, h->e_ehsize == sizeof(*h) && h->e_phentsize == sizeof(Elf64_Phdr)) &&
	       NEED(ELF, h->e_shentsize == sizeof(Elf64_Shdr) && h->e_shstrndx < h->e_shnum) &&
	       NEED(LIMIT, h->e_phnum <= 32 && h->e_shnum <= 256) &&
	       NEED(ELF, f->segments.bytes && f->sections.bytes);
}

/*
 * `end` is that of the PT_LOAD before, `last` the last one that is not empty. Program loaders map
 * whole pages: where two segments share one, both must mean the same part of the file.
 */
static bool check_segments(struct check_file *f)
{
	static const uint32_t others[] = { PT_NULL,      PT_PHDR,        PT_NOTE,
					   PT_DYNAMIC,   PT_GNU_STACK,   PT_GNU_EH_FRAME,
					   PT_GNU_RELRO, PT_GNU_PROPERTY };
	Elf64_Phdr s, last = { 0 };
	uint64_t end = 0;
	bool fine = true;

	f->refusal.what = "program header";
	for (uint32_t i = 0; fine && check_entry(f, &f->segments, i, &s, sizeof(s)); i++) {
		if (s.p_type != PT_LOAD) {
			fine = NEED(SECTION, among(others, LENGTH(others), s.p_type)) &&
			       NEED(WX, s.p_type != PT_GNU_STACK || !(s.p_flags & PF_X));
			continue;
		}
		fine = NEED(WX, !(s.p_flags & PF_W) || !(s.p_flags & PF_X)) &&
		       NEED(LAYOUT, check_span(&f->all, s.p_offset, s.p_filesz)) &&
		       NEED(LAYOUT, s.p_memsz == s.p_filesz && s.p_vaddr < MAX_ADDRESS) &&
		       NEED(LAYOUT, s.p_vaddr >= end && (s.p_vaddr - s.p_offset) % PAGE == 0) &&
		       NEED(LAYOUT,
			    !last.p_memsz || !s.p_memsz ||
				    s.p_vaddr / PAGE != (last.p_vaddr + last.p_memsz - 1) / PAGE ||
				    s.p_vaddr - s.p_offset == last.p_vaddr - last.p_offset);
		end = s.p_vaddr + s.p_memsz;
		last = s.p_memsz ? s : last;
	}
	return fine;
}

/* Wholly in one PT_LOAD, at the same distance from its start in memory and in the file. */
static bool check_mapping(struct check_file *f, const Elf64_Shdr *s, uint64_t also)
{
	Elf64_Phdr p;

	for (uint32_t i = 0; check_entry(f, &f->segments, i, &p, sizeof(p)); i++) {
		uint64_t distance = s->sh_addr - p.p_vaddr;

		if (p.p_type == PT_LOAD && s->sh_addr >= p.p_vaddr && distance < p.p_memsz)
			return NEED(LAYOUT, s->sh_size <= p.p_memsz - distance &&
						    s->sh_offset - p.p_offset == distance) &&
			       NEED(WX, !(p.p_flags & PF_W) || (also & SHF_WRITE)) &&
			       NEED(LAYOUT, !(s->sh_flags & SHF_EXECINSTR) || (p.p_flags & PF_X));
	}
	return NEED(LAYOUT, false);
}

/* By what rule a section is refused that an image may not have. */
static enum fay_rule forbidden(uint32_t type, uint64_t flags)
{
	bool write = flags & SHF_WRITE,
	     initial = type >= SHT_INIT_ARRAY && type <= SHT_PREINIT_ARRAY;

	if (type == SHT_RELA || type == SHT_REL || type == SHT_RELR)
		return write && (flags & SHF_EXECINSTR) ? FAY_RULE_IMG_WX : FAY_RULE_IMG_RELOC;
	if (write && ((flags & SHF_EXECINSTR) || (!(flags & SHF_TLS) && !initial)))
		return FAY_RULE_IMG_WX;
	return FAY_RULE_IMG_SECTION;
}

static bool check_section(struct check_file *f, const Elf64_Shdr *s, const char *name)
{
	bool allocated = s->sh_flags & SHF_ALLOC, ignored;
	uint32_t id = 0, type = s->sh_type;
	struct check_bytes at =
		part_at(f, allocated ? s->sh_addr : s->sh_offset, s->sh_offset, s->sh_size);

	while (!check_matches(known[id].name, name))
		id++;
	if (id == INTERFACE && f->subject->interface == &check_probe_interface)
		id = LENGTH(known) - 1; /* as any other name */
	if (!s->sh_size || (!allocated && id >= PARTS))
		return NEED(ELF, !s->sh_size || type == SHT_NOBITS || at.bytes);
	ignored = *known[id].name != '*' && type != SHT_NOBITS && type != SHT_RELA &&
		  type != SHT_REL && !(s->sh_flags & (SHF_EXECINSTR | SHF_TLS));
	if (allocated && (!NEED(LAYOUT, s->sh_addr < MAX_ADDRESS && s->sh_size < MAX_ADDRESS) ||
			  !NEED(WX, !(s->sh_flags & ~known[id].also & SHF_WRITE)) ||
			  !check_need(f, forbidden(type, s->sh_flags), id < PARTS || ignored)))
		return false;
	if (id < PARTS && (!NEED(SECTION, !f->part[id].size && type == known[id].type) ||
			   !NEED(SECTION, (s->sh_flags & ~known[id].also) == known[id].flags)))
		return false;
	if (id < PARTS)
		f->part[id] = at;
	return (id >= PARTS || NEED(LAYOUT, f->part[id].bytes)) &&
	       (!allocated || check_mapping(f, s, known[id].also));
}

static bool check_sections(struct check_file *f)
{
	Elf64_Shdr s = { 0 }, t;
	struct check_bytes names;
	const char *name;
	bool fine;

	f->refusal.what = "section, or its segment";
	check_entry(f, &f->sections, f->header.e_shstrndx, &s, sizeof(s));
	names = part_at(f, 0, s.sh_offset, s.sh_size);
	fine = NEED(ELF, s.sh_type == SHT_STRTAB && names.bytes);
	for (uint32_t i = 1; fine && check_entry(f, &f->sections, i, &s, sizeof(s)); i++)
		fine = NEED(ELF, (name = check_string(&names, s.sh_name))) &&
		       check_section(f, &s, name);
	for (size_t i = 1; fine && check_entry(f, &f->sections, i, &s, sizeof(s)); i++)
		for (size_t k = 1; fine && k < i && check_entry(f, &f->sections, k, &t, sizeof(t));
		     k++)
			fine = NEED(LAYOUT, !(s.sh_flags & t.sh_flags & SHF_ALLOC) || !s.sh_size ||
						    !t.sh_size ||
						    s.sh_addr + s.sh_size <= t.sh_addr ||
						    t.sh_addr + t.sh_size <= s.sh_addr);
	return fine &&
	       NEED(SECTION, f->part[TEXT].size && f->part[IMAGE].size && f->part[STRINGS].size);
}

/* What .dynamic may say: nothing that would have to be done. */
static bool check_tag(struct check_file *f, uint64_t tag, uint64_t value)
{
	static const uint32_t any[] = { DT_HASH,      DT_GNU_HASH, DT_SYMENT, DT_RELAENT, DT_SONAME,
					DT_SYMBOLIC,  DT_BIND_NOW, DT_PLTGOT, DT_VERSYM,  DT_VERDEF,
					DT_VERDEFNUM, DT_DEBUG,    DT_FLAGS_1 };
	static const uint32_t relocation[] = { DT_TEXTREL, DT_REL,    DT_RELSZ,   DT_RELENT,
					       DT_JMPREL,  DT_PLTREL, DT_PLTRELSZ };

	switch (tag) {
	case DT_STRTAB: return NEED(RELOC, value == f->part[DYNSTR].start);
	case DT_STRSZ: return NEED(RELOC, value == f->part[DYNSTR].size);
	case DT_SYMTAB: return NEED(RELOC, value == f->part[DYNSYM].start);
	case DT_RELA: return NEED(RELOC, value == f->part[RELA].start);
	case DT_RELASZ: return NEED(RELOC, value == f->part[RELA].size);
	case DT_RELACOUNT: return NEED(RELOC, value == 0);
	case DT_FLAGS: return NEED(RELOC, !(value & ~(uint64_t)(DF_BIND_NOW | DF_SYMBOLIC)));
	case DT_NEEDED: return NEED(IMPORT, false);
	default:
		return NEED(RELOC, !among(relocation, LENGTH(relocation), tag)) &&
		       NEED(SECTION, among(any, LENGTH(any), tag));
	}
}

static bool check_dynamic(struct check_file *f)
{
	const struct check_bytes *dynamic = &f->part[DYNAMIC];
	uint64_t offset = dynamic->size ? (uint64_t)(dynamic->bytes - f->all.bytes) : 0;
	bool fine = true;
	Elf64_Phdr p;
	Elf64_Dyn d;

	f->refusal.what = "dynamic entry";
	for (uint32_t i = 0; fine && check_entry(f, &f->segments, i, &p, sizeof(p)); i++)
		fine = NEED(LAYOUT, p.p_type != PT_DYNAMIC ||
					    (p.p_vaddr == dynamic->start && p.p_offset == offset &&
					     p.p_filesz == dynamic->size));
	fine = fine && NEED(LIMIT, dynamic->size / sizeof(d) <= 256);
	for (uint32_t i = 0; fine && check_entry(f, dynamic, i, &d, sizeof(d)) && d.d_tag; i++)
		fine = check_tag(f, (uint64_t)d.d_tag, d.d_un.d_val);
	return fine;
}

/* What runs: .text, .rodata and .got, from the page of the lowest. */
static bool check_layout(struct check_file *f)
{
	uint64_t low = MAX_ADDRESS, high = 0;

	for (uint32_t i = TEXT; i <= GOT; i++) {
		uint64_t start = f->part[i].start, end = start + f->part[i].size;

		low = start < end && start < low ? start : low;
		high = end > high ? end : high;
	}
	f->subject->base = low - low % PAGE;
	f->subject->span = high - f->subject->base;
	f->refusal.what = "place of what runs";
	return NEED(LIMIT, f->subject->span <= FAY_IMAGE_MAX_SPAN) &&
	       NEED(ELF, !f->header.e_entry || f->header.e_entry == f->part[TEXT].start);
}

/* Each relocation makes a new slot, or is the last that is looked at. */
static bool check_slots(struct check_file *f)
{
	const struct fay_interface *interface = f->subject->interface;
	const struct check_bytes *got = &f->part[GOT], *symbols = &f->part[DYNSYM];
	bool fine = NEED(ELF, f->part[RELA].size % sizeof(Elf64_Rela) == 0) &&
		    NEED(LIMIT, symbols->size / sizeof(Elf64_Sym) <= 4096);
	uint32_t helper, n = 0; /* slots so far */
	const char *name = NULL;
	Elf64_Rela r;
	Elf64_Sym s;

	f->refusal.what = "relocation, or its symbol";
	for (; fine && check_entry(f, &f->part[RELA], n, &r, sizeof(r)); n++) {
		fine = NEED(RELOC, ELF64_R_TYPE(r.r_info) == R_X86_64_GLOB_DAT && !r.r_addend) &&
		       NEED(RELOC, ELF64_R_SYM(r.r_info)) &&
		       NEED(RELOC, check_entry(f, symbols, ELF64_R_SYM(r.r_info), &s, sizeof(s))) &&
		       NEED(ELF, (name = check_string(&f->part[DYNSTR], s.st_name))) &&
		       NEED(RELOC, s.st_shndx == SHN_UNDEF);
		for (helper = 0; fine && helper < interface->helper_count &&
				 !check_matches(interface->helper[helper].name, name);)
			helper++;
		fine = fine && NEED(IMPORT, helper < interface->helper_count) &&
		       NEED(RELOC, r.r_offset % 8 == 0) &&
		       NEED(RELOC, check_span(got, r.r_offset - got->start, 8)) &&
		       NEED(LIMIT, n < FAY_IMAGE_MAX_HELPERS);
		for (uint32_t i = 0; fine && i < n; i++)
			fine = NEED(RELOC, f->subject->slots[i].address != r.r_offset);
		if (!fine)
			break;
		f->subject->slots[n].address = r.r_offset;
		f->subject->slots[n].helper = helper;
	}
	f->subject->slot_count = n;
	return fine;
}

struct check_refusal fay_read_extension(const uint8_t *file, size_t size,
					const struct fay_interface *interface,
					struct check_subject *subject)
{
	struct check_file f;

	memset(&f, 0, sizeof(f));
	f.all = (struct check_bytes){ 0, size, file };
	f.subject = subject;
	subject->interface = interface;
	if (read_header(&f) && check_segments(&f) && check_sections(&f) && check_dynamic(&f) &&
	    check_layout(&f) && check_slots(&f) && check_tables(&f))
		f.refusal.rule = FAY_RULE_NONE;
	return f.refusal;
}
