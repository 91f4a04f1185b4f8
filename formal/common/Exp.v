(** Bounds of exp at rational points by its series: no floating point, no axiom beyond those of the reals. *)

Require Import Reals Lra Lia ZArith.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Calculus.
Open Scope R_scope.

(** x^k/k! *)
Fixpoint term (x : R) (k : nat) : R :=
  match k with
  | O => 1
  | S j => term x j * (x / IZR (Z.of_nat (S j)))
  end.

(** The sum of the first n terms. *)
Fixpoint series (x : R) (n : nat) : R :=
  match n with
  | O => 0
  | S j => series x j + term x j
  end.

Lemma is_derive_term x j : is_derive (fun y => term y (S j)) x (term x j).
Proof.
  induction j.
  - simpl. auto_derive; [easy|]. field.
  - assert (P : IZR (Z.of_nat (S j)) = INR j + 1) by (rewrite <- INR_IZR_INZ; apply S_INR).
    assert (Q : IZR (Z.of_nat (S (S j))) = INR j + 2) by (rewrite <- INR_IZR_INZ, !S_INR; ring).
    pose proof (pos_INR j).
    assert (D : is_derive (fun y => y / IZR (Z.of_nat (S (S j)))) x (/ IZR (Z.of_nat (S (S j))))).
    { generalize (IZR (Z.of_nat (S (S j)))). intro c. auto_derive; [easy|]. ring. }
    pose proof (is_derive_mult (fun y => term y (S j)) (fun y => y / IZR (Z.of_nat (S (S j)))) x _ _ IHj D Rmult_comm) as E.
    replace (term x (S j)) with
      (term x j * (x / IZR (Z.of_nat (S (S j)))) + term x (S j) * / IZR (Z.of_nat (S (S j)))); [exact E|].
    change (term x (S j)) with (term x j * (x / IZR (Z.of_nat (S j)))).
    rewrite P, Q. field. lra.
Qed.

Lemma is_derive_series x n : is_derive (fun y => series y (S n)) x (series x n).
Proof.
  induction n.
  - simpl. auto_derive; [easy|]. ring.
  - apply (is_derive_plus (fun y => series y (S n)) (fun y => term y (S n))); [exact IHn|apply is_derive_term].
Qed.

Lemma term_nonneg x k : 0 <= x -> 0 <= term x k.
Proof.
  intro P. induction k; simpl; [lra|]. apply Rmult_le_pos; [exact IHk|].
  apply Rmult_le_pos; [exact P|]. apply Rlt_le, Rinv_0_lt_compat. apply (IZR_lt 0). lia.
Qed.

Lemma at_zero n : (term 0 (S n) = 0) /\ (series 0 (S n) = 1).
Proof.
  assert (T : forall k, term 0 (S k) = 0) by (intro k; simpl; unfold Rdiv; rewrite Rmult_0_l; apply Rmult_0_r).
  split; [apply T|]. induction n; [simpl; ring|]. cbn [series] in *. rewrite T. lra.
Qed.

Lemma exp_lower x n : 0 <= x -> series x n <= exp x.
Proof.
  revert x. induction n; intros x P; [simpl; apply Rlt_le, exp_pos|].
  assert (D : forall y, is_derive (fun y => exp y - series y (S n)) y (exp y - series y n)).
  { intro y. apply (is_derive_minus exp (fun y => series y (S n))); [apply is_derive_exp|apply is_derive_series]. }
  pose proof (growing _ _ 0 x P (fun y _ => D y)) as G. cbv beta in G.
  rewrite exp_0, (proj2 (at_zero n)) in G.
  assert (1 - 1 <= exp x - series x (S n)); [|lra].
  apply G. intros y [Y _]. pose proof (IHn y Y). lra.
Qed.

Lemma exp_remainder x n : 0 <= x -> exp x - series x n <= term x n * exp x.
Proof.
  revert x. induction n; intros x P; [simpl; pose proof (exp_pos x); lra|].
  assert (D : forall y, is_derive (fun y => term y (S n) * exp y - (exp y - series y (S n))) y
    (term y n * exp y + term y (S n) * exp y - (exp y - series y n))).
  { intro y. apply (is_derive_minus (fun y => term y (S n) * exp y) (fun y => exp y - series y (S n))).
    - apply (is_derive_mult (fun y => term y (S n)) exp y _ _ (is_derive_term y n) (is_derive_exp y)). apply Rmult_comm.
    - apply (is_derive_minus exp (fun y => series y (S n))); [apply is_derive_exp|apply is_derive_series]. }
  pose proof (growing _ _ 0 x P (fun y _ => D y)) as G. cbv beta in G.
  rewrite exp_0, (proj2 (at_zero n)), (proj1 (at_zero n)) in G.
  assert (0 * 1 - (1 - 1) <= term x (S n) * exp x - (exp x - series x (S n))); [|lra].
  apply G. intros y [Y _]. pose proof (IHn y Y). pose proof (term_nonneg y (S n) Y). pose proof (exp_pos y). nra.
Qed.

Lemma exp_upper x n b : 0 <= x -> term x n < 1 -> series x n <= b * (1 - term x n) -> exp x <= b.
Proof.
  intros P T B. pose proof (exp_remainder x n P). apply (Rmult_le_reg_r (1 - term x n)); lra.
Qed.

(** For the two lemmas at numbers. *)
Ltac by_series := cbn [series term Z.of_nat Pos.of_succ_nat Pos.succ]; lra.
