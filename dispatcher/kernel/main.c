// SPDX-License-Identifier: MIT OR GPL-2.0
/* The device. An open file is a session; closing it, also by the death of its owner, detaches. */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "fay.h"

/* A session whose file is closed while calls are under way: tried again until they have
 * returned. */
struct leaving {
	struct delayed_work work;
	struct fay_session *session;
};

/* Of our own, so that unloading waits until leave_later() has returned: it drops the last reference
 * to this module. */
static struct workqueue_struct *leaving_queue;

static void leave_later(struct work_struct *work)
{
	struct leaving *leaving = container_of(to_delayed_work(work), struct leaving, work);

	if (fay_session_destroy(leaving->session) == -EAGAIN) {
		queue_delayed_work(leaving_queue, &leaving->work, HZ);
		return;
	}
	kfree(leaving);
	module_put(THIS_MODULE);
}

struct opened {
	/* one call at a time on a file; held while the caller's memory is read, which can take as
	 * long as the caller likes */
	struct mutex lock;
	struct fay_users *users; /* what the opener is held to; NULL: it had CAP_SYS_ADMIN */
	kuid_t owner;
	struct fay_session *session;
	struct leaving *leaving; /* made when the file is opened, so that closing it cannot fail */
};

/* Who is not root is a user if there is a policy, and its group. In a user namespace groups and
 * capabilities can be had for the asking. */
static int find_users(struct fay_users **users)
{
	*users = NULL;
	if (capable(CAP_SYS_ADMIN))
		return 0;
	*users = fay_users_get();
	if (*users && current_user_ns() == &init_user_ns && in_egroup_p((*users)->group))
		return 0;
	fay_users_put(*users);
	return -EPERM;
}

static int device_open(struct inode *inode, struct file *file)
{
	struct fay_users *users;
	struct opened *opened;
	int result = find_users(&users);

	if (result)
		return result;
	opened = kzalloc(sizeof(*opened), GFP_KERNEL);
	if (opened)
		opened->leaving = kzalloc(sizeof(*opened->leaving), GFP_KERNEL);
	if (!opened || !opened->leaving) {
		kfree(opened);
		fay_users_put(users);
		return -ENOMEM;
	}
	opened->users = users;
	opened->owner = current_uid();
	mutex_init(&opened->lock);
	file->private_data = opened;
	return 0;
}

static int device_release(struct inode *inode, struct file *file)
{
	struct opened *opened = file->private_data;
	int result = opened->session ? fay_session_destroy(opened->session) : 0;

	if (result)
		__module_get(THIS_MODULE); /* the file still holds one */
	if (result == -EAGAIN) {
		opened->leaving->session = opened->session;
		INIT_DELAYED_WORK(&opened->leaving->work, leave_later);
		queue_delayed_work(leaving_queue, &opened->leaving->work, HZ);
	} else {
		kfree(opened->leaving);
	}
	fay_users_put(opened->users);
	kfree(opened);
	return 0;
}

static long create(struct opened *opened, void __user *argument)
{
	struct fay_kernel_create given;
	struct fay_session *session;
	int result;

	if (opened->session)
		return -EBUSY;
	if (copy_from_user(&given, argument, sizeof(given)))
		return -EFAULT;
	result = fay_session_create(&given, opened->users, opened->owner, &session);
	if (!result)
		smp_store_release(&opened->session, session);
	/* a session that was made stays, until the file is closed */
	if ((!result || result == -EKEYREJECTED) && copy_to_user(argument, &given, sizeof(given)))
		result = -EFAULT;
	return result;
}

static long attach(struct opened *opened, const void __user *argument)
{
	struct fay_kernel_attach given;

	if (copy_from_user(&given, argument, sizeof(given)))
		return -EFAULT;
	return fay_session_attach(opened->session, &given);
}

/* A user is not told what lies at addresses. */
static long check(const struct opened *opened, const void __user *argument)
{
	struct fay_kernel_check given;

	if (opened->users)
		return -EPERM;
	if (copy_from_user(&given, argument, sizeof(given)))
		return -EFAULT;
	return fay_check_points(&given);
}

static long run(struct opened *opened, const void __user *argument)
{
	u32 set;

	if (copy_from_user(&set, argument, sizeof(set)))
		return -EFAULT;
	return fay_session_run(opened->session, set);
}

static long detach(struct opened *opened, void __user *argument)
{
	struct fay_kernel_detached answer = { 0 };
	int result = fay_session_detach(opened->session, &answer.calls);

	if (copy_to_user(argument, &answer, sizeof(answer)))
		return -EFAULT;
	return result;
}

static long set_policy(const struct opened *opened, const void __user *argument)
{
	struct fay_kernel_policy given;

	if (opened->users || !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (copy_from_user(&given, argument, sizeof(given)))
		return -EFAULT;
	return fay_users_set(&given);
}

static long allowed(const struct opened *opened, void __user *argument)
{
	struct fay_users *users = opened->users ? fay_users_share(opened->users) : fay_users_get();
	long result = users ? fay_users_answer(users, opened->users, argument) : -ENODATA;

	fay_users_put(users);
	return result;
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long value)
{
	struct opened *opened = file->private_data;
	void __user *argument = (void __user *)value;
	long result = -ENOTTY;

	if (mutex_lock_interruptible(&opened->lock))
		return -EINTR;
	if (command == FAY_KERNEL_CREATE)
		result = create(opened, argument);
	else if (command == FAY_KERNEL_CHECK)
		result = check(opened, argument);
	else if (command == FAY_KERNEL_POLICY)
		result = set_policy(opened, argument);
	else if (command == FAY_KERNEL_ALLOWED)
		result = allowed(opened, argument);
	else if (command == FAY_KERNEL_ATTACH || command == FAY_KERNEL_RUN ||
		 command == FAY_KERNEL_DETACH)
		result = !opened->session               ? -ENODATA
			 : command == FAY_KERNEL_ATTACH ? attach(opened, argument)
			 : command == FAY_KERNEL_RUN    ? run(opened, argument)
							: detach(opened, argument);
	mutex_unlock(&opened->lock);
	return result;
}

/* The state, whole or its beginning. The mapping keeps the file open, so the memory outlives it. */
static int device_mmap(struct file *file, struct vm_area_struct *area)
{
	struct opened *opened = file->private_data;
	struct fay_session *session = smp_load_acquire(&opened->session);

	/* No lock: calls that hold the file's may fault, and the memory's lock is held here. The
	 * session stays until the file is closed. */
	return session && !area->vm_pgoff ? remap_vmalloc_range(area, session->shm, 0) : -EINVAL;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
	.mmap = device_mmap,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR, .name = "fay", .mode = 0600, .fops = &operations
};
static struct notifier_block modules = { .notifier_call = fay_module_event };

static int __init fay_init(void)
{
	int result;

	if (IS_ENABLED(CONFIG_X86_KERNEL_IBT) && boot_cpu_has(X86_FEATURE_IBT)) {
		pr_err("fay: this kernel enforces indirect branch tracking, which return "
		       "trampolines do not fit; boot with ibt=off\n");
		return -EOPNOTSUPP;
	}
	leaving_queue = alloc_workqueue("fay", 0, 0);
	if (!leaving_queue)
		return -ENOMEM;
	result = fay_signature_init();
	if (result)
		goto no_keyring;
	result = register_module_notifier(&modules);
	if (result)
		goto no_notifier;
	result = misc_register(&device);
	if (!result)
		return 0;
	unregister_module_notifier(&modules);
no_notifier:
	fay_signature_finish();
no_keyring:
	destroy_workqueue(leaving_queue);
	return result;
}

static void __exit fay_exit(void)
{
	misc_deregister(&device);
	unregister_module_notifier(&modules);
	destroy_workqueue(leaving_queue);
	fay_signature_finish();
	fay_users_set(&(struct fay_kernel_policy){ 0 });
	fay_pages_finish();
}

module_init(fay_init);
module_exit(fay_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Runs verified probes at the kernel's hotpatch points");
