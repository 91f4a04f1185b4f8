(** A query that is linear in the multi-hot vector of the set: exact uniformity needs rank N - 1.

    A j i is what token j of the set gives to the score of token i; N tokens, sets of q of them. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
Open Scope R_scope.

(** The form that equal scores on every set force (N > q >= 3): margins delta, shifts r, level kappa. *)
Definition form (q : R) (kappa : R) (delta r : nat -> R) (j i : nat) : R :=
  kron j i * delta i + r j + (kappa - delta i) / q.

(** Scores of the set y of size q: equal on y, and delta lower off it. *)
(** @statement Sparse averaging: Linear query
    @kind part
    @hypotheses any N, q >= 1, margins delta, shifts r, level kappa; A_ji = delta_i [i = j] + r_j + (kappa -
      delta_i)/q; any set y of q tokens
    @formula the sum over j in y of A_ji is the same for all i in y, and lower by delta_i for i off y
    @note That equal scores force this form for N > q >= 3 is prose. *)
Theorem linear_query_scores :
  forall N q kappa delta r (y : nat -> bool) i, (0 < q)%nat -> (i < N)%nat ->
  Sum N (fun j => if y j then 1 else 0) = INR q ->
  Sum N (fun j => if y j then form (INR q) kappa delta r j i else 0)
  = Sum N (fun j => if y j then r j else 0) + kappa - (if y i then 0 else delta i).
Proof.
  intros N q kappa delta r y i Pq Li Size. assert (P : 0 < INR q) by now apply (lt_INR 0).
  rewrite (Sum_ext N _ (fun j => kron j i * (if y j then delta i else 0) + (if y j then r j else 0)
    + (kappa - delta i) / INR q * (if y j then 1 else 0))).
  - rewrite !Sum_plus, Sum_scal, Size, (Sum_kron N i (fun j => if y j then delta i else 0) Li).
    destruct (y i); field; lra.
  - intros j _. unfold form. destruct (y j); ring.
Qed.

(** Whatever the shifts: any two vectors that A sends to zero are multiples of each other, so that rank A >= N - 1. *)
(** @statement Sparse averaging: Linear query
    @kind part
    @hypotheses N >= 1, A of that form with positive margins
    @formula two vectors that A sends to zero are multiples of each other: rank A >= N - 1 *)
Theorem linear_query_rank :
  forall N q kappa delta r x x', (0 < N)%nat -> (forall i, (i < N)%nat -> 0 < delta i) ->
  (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * x i) = 0) ->
  (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * x' i) = 0) ->
  exists c c', (c <> 0 \/ c' <> 0) /\ forall i, (i < N)%nat -> c * x i = c' * x' i.
Proof.
  intros N q kappa delta r x x' PN Pd Hx Hx'.
  (* x_j delta_j + r_j s + t = 0, s the sum of x, t that of c_i x_i *)
  set (g := fun i => (kappa - delta i) / q).
  assert (Row : forall y, (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * y i) = 0) ->
    forall j, (j < N)%nat -> delta j * y j + r j * Sum N y + Sum N (fun i => g i * y i) = 0).
  { intros y Hy j Lj. rewrite <- (Hy j Lj).
    rewrite (Sum_ext N (fun i => form q kappa delta r j i * y i)
      (fun i => kron j i * (delta i * y i) + r j * y i + g i * y i)) by (intros; unfold form, g; ring).
    rewrite !Sum_plus, Sum_scal, (Sum_kron_r N j (fun i => delta i * y i) Lj). ring. }
  assert (Inv : 0 < Sum N (fun i => / delta i)).
  { apply Sum_all_pos; [exact PN|]. intros. now apply Rinv_0_lt_compat, Pd. }
  (* sums: s (1 + sum r/delta) + t sum 1/delta = 0 *)
  assert (Tie : forall y, (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * y i) = 0) ->
    Sum N y * (1 + Sum N (fun i => r i / delta i)) + Sum N (fun i => g i * y i) * Sum N (fun i => / delta i) = 0).
  { intros y Hy.
    assert (E : Sum N y = Sum N (fun i => - (Sum N y * (r i / delta i) + Sum N (fun i => g i * y i) * / delta i))).
    { apply Sum_ext. intros i Li. pose proof (Row y Hy i Li) as R. pose proof (Pd i Li).
      apply (Rmult_eq_reg_l (delta i)); [|lra].
      replace (delta i * - (Sum N y * (r i / delta i) + Sum N (fun i0 => g i0 * y i0) * / delta i))
        with (- (r i * Sum N y + Sum N (fun i0 => g i0 * y i0))) by (field; lra). lra. }
    rewrite Sum_opp, Sum_plus, !Sum_scal in E. lra. }
  assert (Zero : forall y, (forall j, (j < N)%nat -> Sum N (fun i => form q kappa delta r j i * y i) = 0) ->
    Sum N y = 0 -> forall i, (i < N)%nat -> y i = 0).
  { intros y Hy S i Li. pose proof (Tie y Hy) as T. rewrite S in T.
    assert (T0 : Sum N (fun i => g i * y i) = 0).
    { apply (Rmult_eq_reg_r (Sum N (fun i => / delta i))); lra. }
    pose proof (Row y Hy i Li) as R. rewrite S, T0 in R. pose proof (Pd i Li).
    apply (Rmult_eq_reg_l (delta i)); lra. }
  destruct (Req_dec (Sum N x) 0) as [Zx|Nx].
  - exists 1, 0. split; [left; lra|]. intros i Li. rewrite (Zero x Hx Zx i Li). ring.
  - exists (Sum N x'), (Sum N x). split; [now right|]. intros i Li.
    set (s := Sum N x) in *. set (s' := Sum N x').
    assert (Z : s' * x i - s * x' i = 0); [|lra].
    apply (Zero (fun i => s' * x i - s * x' i)); [| |exact Li].
    + intros j Lj. rewrite (Sum_ext N _ (fun i => s' * (form q kappa delta r j i * x i) - s * (form q kappa delta r j i * x' i)))
        by (intros; ring).
      rewrite Sum_minus, !Sum_scal, (Hx j Lj), (Hx' j Lj). ring.
    + rewrite Sum_minus, !Sum_scal. fold s s'. ring.
Qed.

(** I - 1 1^T/N is of the form, with margins 1, and sends the ones to zero. *)
(** @statement Sparse averaging: Linear query
    @kind part
    @hypotheses N >= 1, q >= 1
    @formula I - 1 1^T/N is of that form with margins 1, and sends the vector of ones to zero: its rank is N - 1
      *)
Theorem linear_query_attained :
  forall N q j i, (0 < N)%nat -> (0 < q)%nat ->
  kron j i - / INR N = form (INR q) 1 (fun _ => 1) (fun _ => - / INR N) j i /\
  ((j < N)%nat -> Sum N (fun i => (kron j i - / INR N) * 1) = 0).
Proof.
  intros N q j i PN Pq. assert (0 < INR N) by now apply (lt_INR 0). assert (0 < INR q) by now apply (lt_INR 0). split.
  - unfold form. field. lra.
  - intro Lj. rewrite (Sum_ext N _ (fun i => kron j i * 1 - / INR N)) by (intros; ring).
    rewrite Sum_minus, Sum_const, (Sum_kron_r N j (fun _ => 1) Lj). field. lra.
Qed.
