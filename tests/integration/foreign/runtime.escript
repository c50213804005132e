#!/usr/bin/env escript
%% SPDX-License-Identifier: MIT
%% Erlang: processes, exceptions, binaries: foreign_runtimes.sh.
%%! +S 2
fails(N) when N rem 2 =:= 1 -> throw({odd, N});
fails(N) -> N.
caught(N) -> try fails(N) catch throw:{odd, X} -> -X end.
spawned(N) ->
    Self = self(),
    {_, Ref} = spawn_monitor(fun() -> Self ! {sum, lists:sum(lists:seq(1, N))}, exit(N) end),
    receive {sum, Sum} -> receive {'DOWN', Ref, _, _, N} -> Sum end end.
round_of() ->
    Sum = lists:sum([caught(N) * N + spawned(N) || N <- lists:seq(1, 100)]),
    Text = list_to_binary(integer_to_list(Sum)),
    erlang:garbage_collect(),
    Sum + erlang:crc32(Text).
goes_on("loop", Stop, _) -> not filelib:is_file(Stop);
goes_on(_, _, N) -> N < 20.
loop(Mode, Stop, N, Sum) ->
    case goes_on(Mode, Stop, N) of
        true -> Sum = round_of(), loop(Mode, Stop, N + 1, Sum);
        false -> io:format("sum ~p~n", [Sum])
    end.
main(Args) ->
    {Mode, Stop} = case Args of [M, S | _] -> {M, S}; _ -> {"once", ""} end,
    io:format("ready~n"),
    io:get_line(""),
    loop(Mode, Stop, 1, round_of()).
