--  SPDX-License-Identifier: MIT
--  Ada exceptions through traced frames, and in a task: foreign_exceptions.sh.
with Ada.Command_Line; use Ada.Command_Line;
with Ada.Text_IO;      use Ada.Text_IO;

procedure Throws is
   Odd : exception;
   type Number is range -2 ** 62 .. 2 ** 62;

   package Traced is
      function Inner (X : Number) return Number;
      pragma No_Inline (Inner);
      function Middle (X : Number) return Number;
      pragma No_Inline (Middle);
      function Outer (X : Number) return Number;
      pragma No_Inline (Outer);
   end Traced;

   package body Traced is
      Last : Number := 0;
      pragma Volatile (Last);
      function Inner (X : Number) return Number is
      begin
         if X mod 2 = 1 then
            raise Odd with X'Image;
         end if;
         return X;
      end Inner;
      function Middle (X : Number) return Number is
         Y : Number;
      begin
         Y := Inner (X);
         Last := Y;
         return Y + 1;
      exception
         when Constraint_Error => return 0;
      end Middle;
      function Outer (X : Number) return Number is
      begin
         return Middle (X);
      exception
         when Odd => return -X;
      end Outer;
   end Traced;

   function Sum_Of return Number is
      Sum : Number := 0;
   begin
      for I in Number range 0 .. 99 loop
         Sum := Sum + Traced.Outer (I);
      end loop;
      return Sum;
   end Sum_Of;

   function Round return Number is
      Theirs : Number := 0;
   begin
      declare
         task Worker;
         task body Worker is
         begin
            Theirs := Sum_Of;
         end Worker;
      begin
         null;
      end;
      return Sum_Of * 1000 + Theirs;
   end Round;

   Looping : constant Boolean := Argument_Count > 1 and then Argument (2) = "loop";
   Done    : Boolean := False;
   pragma Atomic (Done);
   Sum     : Number;
   Rounds  : Number := 1;

   task Reader is
      entry Start;
   end Reader;
   task body Reader is
   begin
      accept Start;
      if Looping then
         Skip_Line;
      end if;
      Done := True;
   end Reader;
begin
   Put_Line ("ready");
   Flush;
   Skip_Line;
   Sum := Round;
   Reader.Start;
   while (if Looping then not Done else Rounds < 20) loop
      if Round /= Sum then
         raise Program_Error with "a round's sum";
      end if;
      Rounds := Rounds + 1;
   end loop;
   Put_Line ("sum" & Sum'Image);
   Put_Line ("tally" & Number'Image (Rounds * 600) & Number'Image (Rounds * 400)
      & Number'Image (Rounds * 200));
end Throws;
