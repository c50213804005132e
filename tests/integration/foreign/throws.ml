(* SPDX-License-Identifier: MIT *)
(* OCaml's exceptions, which unwind by popping a handler: foreign_exceptions.sh. *)
exception Odd of int

let[@inline never] traced_inner x = if x land 1 = 1 then raise (Odd x) else Sys.opaque_identity x
let[@inline never] traced_middle x = Sys.opaque_identity (traced_inner x) + 1
let[@inline never] traced_outer x = try traced_middle x with Odd y -> -y
let keep = ref []

let round () =
  let sum = ref 0 in
  for i = 0 to 199 do
    keep := List.init 20 (fun j -> i + j);
    sum := !sum + (i * traced_outer i) + List.length !keep
  done;
  Gc.minor ();
  !sum

let has_line () = match Unix.select [ Unix.stdin ] [] [] 0. with [], _, _ -> false | _ -> true

let () =
  let looping = Array.length Sys.argv > 2 && Sys.argv.(2) = "loop" in
  print_endline "ready";
  ignore (Unix.read Unix.stdin (Bytes.create 8) 0 8);
  let sum = round () and rounds = ref 1 in
  while if looping then not (has_line ()) else !rounds < 20 do
    if round () <> sum then failwith "a round's sum";
    incr rounds
  done;
  Printf.printf "sum %d\ntally %d %d %d\n" sum (!rounds * 600) (!rounds * 400) (!rounds * 200)
