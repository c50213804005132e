// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Signed images only, where the administrator says so: that comes on top of the checker's word.
 * Signatures and certificates are read by the kernel's own code, as those of modules and of
 * fs-verity's files are; the keys that count are those of the keyring `.fay`, which root fills and,
 * by KEYCTL_RESTRICT_KEYRING, closes.
 */
#include <linux/cred.h>
#include <linux/key.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/verification.h>
#include <linux/vmalloc.h>

#include "fay.h"

static struct key *keyring;
static bool required;

/* It is not taken back while the module is loaded. */
static int set_required(const char *value, const struct kernel_param *parameter)
{
	bool wanted;
	int result = kstrtobool(value, &wanted);

	if (result || wanted == READ_ONCE(required))
		return result;
	if (!wanted)
		return -EPERM;
	if (!IS_ENABLED(CONFIG_SYSTEM_DATA_VERIFICATION))
		return -EOPNOTSUPP;
	WRITE_ONCE(required, true);
	return 0;
}

static const struct kernel_param_ops required_ops = {
	.set = set_required,
	.get = param_get_bool,
};
module_param_cb(signatures, &required_ops, &required, 0644);
MODULE_PARM_DESC(signatures, "only images that a key of the keyring .fay has signed");

static int check_signature(const void *image, size_t size, const void *signature,
			   size_t signature_size)
{
#if IS_ENABLED(CONFIG_SYSTEM_DATA_VERIFICATION)
	return verify_pkcs7_signature(image, size, signature, signature_size, keyring,
				      VERIFYING_UNSPECIFIED_SIGNATURE, NULL, NULL);
#else
	return -EOPNOTSUPP;
#endif
}

int fay_signature_check(const struct fay_kernel_create *create, const void *image)
{
	void *signature;
	int result;

	if (!READ_ONCE(required))
		return 0;
	if (!create->signature_size)
		return -ENOKEY;
	if (create->signature_size > FAY_KERNEL_SIGNATURE_MAX)
		return -EBADMSG;
	signature = vmemdup_user((const void __user *)create->signature, create->signature_size);
	if (IS_ERR(signature))
		return PTR_ERR(signature);
	result = check_signature(image, create->image_size, signature, create->signature_size);
	kvfree(signature);
	switch (result) {
	case 0:
	case -ENOMEM:
	case -ENOKEY:
	case -EKEYEXPIRED:
	case -EKEYREVOKED: return result;
	case -EKEYREJECTED: return -EILSEQ; /* it means a rule of the checker's elsewhere */
	default: return -EBADMSG;
	}
}

int __init fay_signature_init(void)
{
	struct key *made = keyring_alloc(".fay", GLOBAL_ROOT_UID, GLOBAL_ROOT_GID, current_cred(),
					 KEY_POS_SEARCH | KEY_USR_VIEW | KEY_USR_READ |
						 KEY_USR_WRITE | KEY_USR_SEARCH | KEY_USR_SETATTR,
					 KEY_ALLOC_NOT_IN_QUOTA, NULL, NULL);

	if (IS_ERR(made))
		return PTR_ERR(made);
	keyring = made;
	return 0;
}

void fay_signature_finish(void)
{
	key_put(keyring);
}
