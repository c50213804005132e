/* SPDX-License-Identifier: MIT */
/*
 * probe.c to an image. clang-19 is run as a program (no shell, no temporary file: bitcode comes
 * through a memfd), with its optimiser off, because the guards want to see the code before it is
 * optimised, and with line information, because refusals name lines. Its diagnostics go to standard
 * error as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <llvm-c/BitReader.h>

#include "front_private.h"

#define ARGUMENT_MAX 96

extern char **environ;

/* Where fay/probe.h is: beside the program if installed, or where the program was built. */
static const char *include_path(char *buffer, size_t size)
{
	static const char *const tries[] = { "../include", "../../include", "../../../include" };
	char exe[PATH_MAX], header[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n > 0) {
		exe[n] = 0;
		*strrchr(exe, '/') = 0;
		for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
			snprintf(header, sizeof(header), "%s/%s/fay/probe.h", exe, tries[i]);
			if (!access(header, R_OK) &&
			    (size_t)snprintf(buffer, size, "%s/%s", exe, tries[i]) < size)
				return buffer;
		}
	}
	return FAY_SOURCE_INCLUDE;
}

static int spawn_clang(char *const arguments[], int out, struct fay_error *error)
{
	posix_spawn_file_actions_t actions;
	const char *program = getenv("FAY_CLANG_PROGRAM");
	int status = 0, failed;
	pid_t pid;

	if (!program)
		program = access(FAY_CLANG, X_OK) ? "clang-19" : FAY_CLANG;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	failed = posix_spawnp(&pid, program, &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (failed == ENOENT)
		return fay_error_set(error, FAY_E_REFUSED,
				     "%s is not installed; it turns probe.c into LLVM bitcode. On "
				     "Debian: apt-get install "
				     "clang-19",
				     program);
	if (failed)
		return fay_error_set(error, FAY_E_INTERNAL, "%s cannot be started: %s", program,
				     strerror(failed));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return fay_error_set(error, FAY_E_REFUSED, "%s cannot be run", program);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return fay_error_set(error, FAY_E_REFUSED,
				     "the C compiler refused the file; see its messages above");
	return 0;
}

/* `fixed` begins with the program's name and ends with NULL. */
static int run_clang(const char *const *fixed, const char *path, const char *const *extra,
		     unsigned extra_count, int out, struct fay_error *error)
{
	const char *arguments[ARGUMENT_MAX];
	char include[PATH_MAX];
	unsigned n = 0;

	for (; fixed[n]; n++)
		arguments[n] = fixed[n];
	arguments[n++] = "-I";
	arguments[n++] = include_path(include, sizeof(include));
	for (unsigned i = 0; i < extra_count && n < ARGUMENT_MAX - 3; i++)
		arguments[n++] = extra[i];
	arguments[n++] = "--";
	arguments[n++] = path;
	arguments[n] = NULL;
	return spawn_clang((char *const *)arguments, out, error);
}

static int run_for_bitcode(const char *path, const char *const *extra, unsigned extra_count,
			   int out, struct fay_error *error)
{
	static const char *const fixed[] = {
		"clang-19",
		"-x",
		"c",
		"-std=gnu17",
		"--target=x86_64-unknown-linux-gnu",
		"-O2",
		"-Xclang",
		"-disable-llvm-passes",
		"-g",
		"-fdebug-compilation-dir=.",
		"-fPIC",
		"-fno-strict-aliasing",
		"-fno-stack-protector",
		"-fno-asynchronous-unwind-tables",
		"-fno-common",
		"-fcf-protection=none",
		"-fno-math-errno",
		"-ffp-contract=off",
		"-Wall",
		"-emit-llvm",
		"-c",
		"-o",
		"-",
		NULL,
	};

	return run_clang(fixed, path, extra, extra_count, out, error);
}

static int read_bitcode(int file, LLVMContextRef context, LLVMModuleRef *module,
			struct fay_error *error)
{
	struct stat st;
	void *bytes;
	LLVMMemoryBufferRef buffer;
	int result = 0;

	if (fstat(file, &st) || st.st_size <= 0)
		return fay_error_set(error, FAY_E_INTERNAL, "the C compiler wrote no bitcode");
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (bytes == MAP_FAILED)
		return fay_error_set(error, FAY_E_INTERNAL, "bitcode cannot be mapped: %s",
				     strerror(errno));
	buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes, (size_t)st.st_size, "probe");
	munmap(bytes, (size_t)st.st_size);
	if (LLVMParseBitcodeInContext2(context, buffer, module))
		result = fay_error_set(error, FAY_E_INTERNAL, "bitcode cannot be read");
	LLVMDisposeMemoryBuffer(buffer);
	return result;
}

/* What is plainly no text, which clang would quote line by line. Of a pipe nothing can be looked at
 * twice: it is left to clang. */
static int check_text(const char *path, struct fay_error *error)
{
	char head[512];
	struct stat st;
	ssize_t size = 0;
	int file, found = stat(path, &st);

	if (!found && S_ISDIR(st.st_mode))
		return fay_error_set(error, FAY_E_USAGE, "a directory, not a C source file");
	file = !found && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (file >= 0) {
		size = read(file, head, sizeof(head));
		close(file);
	}
	if (size >= 4 && !memcmp(head, "\177ELF", 4))
		return fay_error_set(error, FAY_E_USAGE,
				     "an ELF file (a program, an object, or an image: `fay verify` "
				     "takes those), not a C source file");
	if (size > 0 && memchr(head, 0, (size_t)size))
		return fay_error_set(error, FAY_E_USAGE, "not text, so not a C source file");
	return FAY_OK;
}

int fay_source_module(const char *path, const char *const *extra, unsigned extra_count,
		      LLVMContextRef context, LLVMModuleRef *module, struct fay_error *error)
{
	int file, result;

	if (access(path, R_OK))
		return fay_error_set(error, FAY_E_USAGE, "%s: %s", path, strerror(errno));
	if ((result = check_text(path, error)))
		return result;
	file = memfd_create("fay-bitcode", MFD_CLOEXEC);
	if (file < 0)
		return fay_error_set(error, FAY_E_INTERNAL, "memfd_create: %s", strerror(errno));
	result = run_for_bitcode(path, extra, extra_count, file, error);
	if (!result)
		result = read_bitcode(file, context, module, error);
	close(file);
	return result;
}

int fay_source_compile(const char *path, const struct fay_compile_options *options, unsigned report,
		       const char *const *extra, unsigned extra_count, struct fay_buffer *image,
		       struct fay_buffer *assembly, struct fay_error *error)
{
	struct fay_declarations d = { 0 };
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = NULL;
	bool readable = !access(path, R_OK);
	int result = fay_source_module(path, extra, extra_count, context, &module, error);

	if (!result) {
		result = fay_declarations_read(module, &d, error);
		if (!result)
			result = fay_unit_compile(module, &d.spec, d.objects, d.object_count,
						  options, report, image, assembly, error);
		else
			LLVMDisposeModule(module);
	}
	/* no line is shown: at least the file */
	if (result && error && readable && !strstr(error->message, " | ")) {
		struct fay_error bare = *error;

		fay_error_set(error, bare.code, "%.400s: %.1600s", path, bare.message);
	}
	fay_declarations_deinit(&d);
	LLVMContextDispose(context);
	return result;
}

int fay_compile_source(const char *path, const struct fay_compile_options *options,
		       struct fay_buffer *image, struct fay_error *error)
{
	return fay_source_compile(path, options, 0, NULL, 0, image, NULL, error);
}

/* The options of docs/internals/host-interface.md; no guards, since what bounds there are only the
 * host's interface tells. */
int fay_source_extension(const char *path, const char *const *extra, unsigned extra_count,
			 const char *output, struct fay_error *error)
{
	const char *const fixed[] = {
		"clang-19",
		"-x",
		"c",
		"-std=gnu17",
		"--target=x86_64-unknown-linux-gnu",
		"-O2",
		"-Wall",
		"-ffreestanding",
		"-fPIC",
		"-fvisibility=hidden",
		"-fno-plt",
		"-fno-jump-tables",
		"-fno-stack-protector",
		"-fcf-protection=none",
		"-fno-asynchronous-unwind-tables",
		"-fno-optimize-sibling-calls",
		"-mno-red-zone",
		"-fno-unroll-loops",
		"-fno-vectorize", /* it compares pointers of different regions */
		"-shared",
		"-nostdlib",
		"-Wl,-z,now,-z,noexecstack,--hash-style=gnu,--build-id=none",
		"-o",
		output,
		NULL,
	};

	if (access(path, R_OK))
		return fay_error_set(error, FAY_E_USAGE, "%s: %s", path, strerror(errno));
	return check_text(path, error) ? (int)error->code
				       : run_clang(fixed, path, extra, extra_count, 1, error);
}
