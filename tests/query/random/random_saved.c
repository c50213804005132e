/* SPDX-License-Identifier: MIT */
#include "random_saved.h"

#include "saved_question.h"
#include "tests/query/reference/answers.h"
#include "tests/query/reference/shares.h"

#define FILES 5

/* A question that the saved events can answer; the shape is one of the events. */
static char *random_question(const struct saved_trace *trace, struct shape *shape)
{
	events_have = saved_trace_have(trace);
	random_shape(shape);
	char *text = text_of_shape(shape, saved_trace_source(trace)),
	     *question = saved_trace_question(trace, text);
	free(text);
	shape->without = saved_trace_without(trace, question);
	return question;
}

static unsigned check_files(struct saved_trace *trace)
{
	static struct stream stream;
	struct shape shape;
	struct saved_question question;
	unsigned pairs = 0;
	char *text = random_question(trace, &shape);
	saved_question_init(&question, text);
	for (unsigned i = 0; i < FILES; i++) {
		struct fay_result merged;
		saved_trace_write(trace);
		saved_trace_read(trace, &stream);
		if (saved_question_ask(&question, &merged)) {
			check_answer(&(struct asked){ &shape, text, question.plan, &stream },
				     &merged);
			fay_result_deinit(&merged);
			pairs++;
		} else {
			assert_int_equal(stream.count, 0);
		}
	}
	saved_question_deinit(&question);
	count_operators(text, pairs);
	free(text);
	free_shape(&shape);
	return pairs;
}

unsigned run_saved_queries(unsigned queries)
{
	unsigned pairs = 0;
	for (unsigned form = 0; form < saved_trace_forms; form++) {
		struct saved_trace *trace = saved_trace_create(form);
		for (unsigned q = form; q < queries; q += saved_trace_forms)
			pairs += check_files(trace);
		saved_trace_destroy(trace);
	}
	return pairs;
}
