/* SPDX-License-Identifier: MIT */
/*
 * An nginx module: clients send a classifier of requests, native code that is checked and then
 * called directly.
 *
 *     location = /classifier { fay_upload; }     takes an extension for requests.host
 *     ... $fay_class ...                         what its function "classify" says of the request
 *
 * An image that is refused is answered with 422 and the rule that it breaks. What was accepted lies
 * in memory that the workers share; each checks and maps it for itself. A worker handles one
 * request at a time, so none is in a classifier when it is replaced. docs/internals/hosts.md has
 * the commands.
 */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <fay/host/host.h>

#define IMAGE 65536u /* bytes: checking takes as long as they are many */
#define TEXT 8192u   /* as the interface says */

__asm__(".pushsection .rodata\n"
	"interface: .incbin \"requests.host\"\n"
	"interface_end: .popsection");
extern const char interface[] __attribute__((visibility("hidden")));
extern const char interface_end[] __attribute__((visibility("hidden")));

typedef uint64_t classify_function(const u_char *path, uint64_t path_size, const u_char *agent,
				   uint64_t agent_size);

/* Of all workers, behind the zone's lock. */
struct shared {
	ngx_uint_t version; /* 0: nothing was sent */
	size_t size;
	u_char image[IMAGE];
};

/* Of this worker. */
static struct fay_host *host;
static struct fay_loaded *loaded;
static classify_function *classify;
static ngx_uint_t version;

static ngx_shm_zone_t *zone;
ngx_module_t ngx_http_fay_module;

/* ---- the classifier ---- */

/* The worker's classifier from now on. Nothing changes if the image is refused. */
static ngx_int_t use(const u_char *image, size_t size, struct fay_error *error)
{
	struct fay_loaded *next;
	classify_function *function;

	if (fay_host_load(host, image, size, &next, error))
		return NGX_ERROR;
	function = (classify_function *)fay_loaded_entry(next, "classify");
	if (!function) {
		fay_host_unload(next);
		fay_error_set(error, FAY_E_REFUSED, "the image has no function classify");
		return NGX_ERROR;
	}
	fay_host_unload(loaded);
	loaded = next;
	classify = function;
	return NGX_OK;
}

/* What another worker took. */
static void follow(void)
{
	ngx_slab_pool_t *pool = (ngx_slab_pool_t *)zone->shm.addr;
	const struct shared *shared = zone->data;
	struct fay_error error;

	if (shared->version == version)
		return;
	ngx_shmtx_lock(&pool->mutex);
	version = shared->version;
	use(shared->image, shared->size, &error); /* of a copy; it was accepted before */
	ngx_shmtx_unlock(&pool->mutex);
}

static void share(const u_char *image, size_t size)
{
	ngx_slab_pool_t *pool = (ngx_slab_pool_t *)zone->shm.addr;
	struct shared *shared = zone->data;

	ngx_shmtx_lock(&pool->mutex);
	ngx_memcpy(shared->image, image, size);
	shared->size = size;
	version = ++shared->version;
	ngx_shmtx_unlock(&pool->mutex);
}

static ngx_int_t class_of(ngx_http_request_t *r, ngx_http_variable_value_t *v,
			  uintptr_t data __attribute__((unused)))
{
	const ngx_table_elt_t *header = r->headers_in.user_agent;
	ngx_str_t agent = header ? header->value : (ngx_str_t)ngx_string("");
	u_char *text = ngx_pnalloc(r->pool, NGX_INT_T_LEN);

	if (!text)
		return NGX_ERROR;
	follow();
	v->valid = classify && r->uri.len < TEXT && agent.len < TEXT;
	v->not_found = !v->valid;
	if (v->valid) {
		uint64_t class = classify(r->uri.data, r->uri.len, agent.data, agent.len);

		v->len = (unsigned)(ngx_sprintf(text, "%uL", class) - text) & 0xfffffff;
		v->data = text;
	}
	return NGX_OK;
}

/* ---- uploads ---- */

static ngx_int_t answer(ngx_http_request_t *r, ngx_uint_t status, const char *text)
{
	size_t size = ngx_strlen(text);
	ngx_buf_t *b = ngx_create_temp_buf(r->pool, size + 1);
	ngx_chain_t out = { .buf = b };
	ngx_int_t result;

	if (!b)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	b->last = ngx_sprintf(b->pos, "%s\n", text);
	b->last_buf = b->last_in_chain = 1;
	r->headers_out.status = status;
	r->headers_out.content_length_n = (off_t)(size + 1);
	ngx_str_set(&r->headers_out.content_type, "text/plain");
	result = ngx_http_send_header(r);
	return result == NGX_OK ? ngx_http_output_filter(r, &out) : result;
}

static ngx_int_t take(ngx_http_request_t *r)
{
	u_char *image = ngx_palloc(r->pool, IMAGE);
	struct fay_error error;
	size_t size = 0;

	if (!image)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	for (ngx_chain_t *c = r->request_body ? r->request_body->bufs : NULL; c; c = c->next) {
		size_t n = (size_t)ngx_buf_size(c->buf);

		if (!ngx_buf_in_memory(c->buf) || n > IMAGE - size)
			return answer(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, "too large an image");
		ngx_memcpy(image + size, c->buf->pos, n);
		size += n;
	}
	if (use(image, size, &error))
		return answer(r, 422, error.message);
	share(image, size);
	return answer(r, NGX_HTTP_OK, "accepted");
}

static void taken(ngx_http_request_t *r)
{
	ngx_http_finalize_request(r, take(r));
}

static ngx_int_t upload(ngx_http_request_t *r)
{
	ngx_int_t result;

	if (!(r->method & (NGX_HTTP_PUT | NGX_HTTP_POST)))
		return NGX_HTTP_NOT_ALLOWED;
	result = ngx_http_read_client_request_body(r, taken);
	return result >= NGX_HTTP_SPECIAL_RESPONSE ? result : NGX_DONE;
}

/* ---- set up ---- */

static char *upload_here(ngx_conf_t *cf, ngx_command_t *command __attribute__((unused)),
			 void *of __attribute__((unused)))
{
	ngx_http_core_loc_conf_t *location =
		ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

	location->handler = upload;
	return NGX_CONF_OK;
}

static ngx_int_t begin_zone(ngx_shm_zone_t *z, void *before)
{
	ngx_slab_pool_t *pool = (ngx_slab_pool_t *)z->shm.addr;

	z->data = before ? before : ngx_slab_calloc(pool, sizeof(struct shared));
	return z->data ? NGX_OK : NGX_ERROR;
}

static ngx_int_t add(ngx_conf_t *cf)
{
	ngx_str_t name = ngx_string("fay_class"), zone_name = ngx_string("fay_classifier");
	ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE);

	zone = ngx_shared_memory_add(cf, &zone_name, 4 * IMAGE, &ngx_http_fay_module);
	if (!variable || !zone)
		return NGX_ERROR;
	variable->get_handler = class_of;
	zone->init = begin_zone;
	return NGX_OK;
}

static ngx_int_t begin_worker(ngx_cycle_t *cycle)
{
	struct fay_error error;

	if (fay_host_open(interface, (size_t)(interface_end - interface), &host, &error)) {
		ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "requests.host:%s", error.message);
		return NGX_ERROR;
	}
	return NGX_OK;
}

static ngx_command_t commands[] = {
	{ ngx_string("fay_upload"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, upload_here, 0, 0, NULL },
	ngx_null_command,
};

static ngx_http_module_t http = { .preconfiguration = add };

ngx_module_t ngx_http_fay_module = {
	NGX_MODULE_V1,
	.ctx = &http,
	.commands = commands,
	.type = NGX_HTTP_MODULE,
	.init_process = begin_worker,
	NGX_MODULE_V1_PADDING,
};
