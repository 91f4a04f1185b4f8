(** Small tools of analysis: monotony from derivatives, and inequalities of the exponential function. *)

Require Import Reals Lra Lia Psatz ZArith.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Lemma is_derive_continuity_pt f x d : is_derive f x d -> continuity_pt f x.
Proof.
  intro H. apply continuity_pt_filterlim. apply (ex_derive_continuous f x). now exists d.
Qed.

(** The mean value theorem on an interval whose ends count. *)
Lemma mean_value f df a b :
  a < b -> (forall x, a <= x <= b -> is_derive f x (df x)) ->
  exists c, a <= c <= b /\ f b - f a = df c * (b - a).
Proof.
  intros L H. destruct (MVT_gen f a b df) as [c [B E]].
  - intros x. rewrite Rmin_left, Rmax_right by lra. intro. apply H. lra.
  - intros x. rewrite Rmin_left, Rmax_right by lra. intro.
    apply (is_derive_continuity_pt f x (df x)), H. lra.
  - rewrite Rmin_left, Rmax_right in B by lra. now exists c.
Qed.

Lemma growing f df a b :
  a <= b -> (forall x, a <= x <= b -> is_derive f x (df x)) ->
  (forall x, a <= x <= b -> 0 <= df x) -> f a <= f b.
Proof.
  intros L H P. destruct (Req_dec a b) as [->|N]; [lra|].
  destruct (mean_value f df a b) as [c [B E]]; [lra|exact H|].
  pose proof (P c B). assert (0 <= df c * (b - a)) by (apply Rmult_le_pos; lra). lra.
Qed.

(** Strictly, where the derivative may vanish at the ends. *)
Lemma growing_strictly f df a b :
  a < b -> (forall x, a <= x <= b -> is_derive f x (df x)) ->
  (forall x, a < x < b -> 0 < df x) -> f a < f b.
Proof.
  intros L H P. destruct (MVT_cor2 f df a b L) as [c [E B]].
  - intros c B. apply is_derive_Reals. now apply H.
  - assert (0 < df c * (b - a)) by (apply Rmult_lt_0_compat; [now apply P|lra]). lra.
Qed.

Lemma falling_strictly f df a b :
  a < b -> (forall x, a <= x <= b -> is_derive f x (df x)) ->
  (forall x, a < x < b -> df x < 0) -> f b < f a.
Proof.
  intros L H P. destruct (MVT_cor2 f df a b L) as [c [E B]].
  - intros c B. apply is_derive_Reals. now apply H.
  - assert (0 < - df c * (b - a)) by (apply Rmult_lt_0_compat; [pose proof (P c B); lra|lra]). lra.
Qed.

Lemma exp_above_line x : 1 + x <= exp x.
Proof.
  destruct (Req_dec x 0) as [->|N]; [rewrite exp_0; lra|]. apply Rlt_le, exp_ineq1. exact N.
Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [L| ->]; [apply Rlt_le, exp_increasing, L|lra]. Qed.

(** Tangents of exp lie below it, at both ends of a step. *)
Lemma exp_step_low a b : exp a * (b - a) <= exp b - exp a.
Proof.
  replace (exp b) with (exp a * exp (b - a)) by (rewrite <- exp_plus; f_equal; ring).
  pose proof (exp_above_line (b - a)). pose proof (exp_pos a). nra.
Qed.

Lemma exp_step_high a b : exp b - exp a <= exp b * (b - a).
Proof. pose proof (exp_step_low b a). lra. Qed.

Lemma exp_square x : 0 <= x -> 1 + x + x ^ 2 / 2 <= exp x.
Proof.
  intro P.
  assert (E : forall u, is_derive (fun u => exp u - 1 - u - u ^ 2 / 2) u (exp u - 1 - u)).
  { intro u. auto_derive; [easy|]. field. }
  pose proof (growing _ _ 0 x P (fun u _ => E u)) as G. simpl in G.
  rewrite exp_0 in G.
  assert (1 - 1 - 0 - 0 * (0 * 1) / 2 <= exp x - 1 - x - x * (x * 1) / 2).
  { apply G. intros u _. pose proof (exp_above_line u). lra. }
  simpl. lra.
Qed.

(** exp(d) - 1 - d is at most d (exp(d) - 1)/2. *)
Lemma exp_excess d : 0 <= d -> exp d - 1 - d <= d * (exp d - 1) / 2.
Proof.
  intro P.
  assert (F : forall u, is_derive (fun u => (u - 1) * exp u + 1) u (u * exp u)).
  { intro u. auto_derive; [easy|]. ring. }
  assert (E : forall u, is_derive (fun u => (u - 2) * exp u + u + 2) u ((u - 1) * exp u + 1)).
  { intro u. auto_derive; [easy|]. ring. }
  assert (S : forall u, 0 <= u -> 0 <= (u - 1) * exp u + 1).
  { intros u U. pose proof (growing _ _ 0 u U (fun v _ => F v)) as G. simpl in G.
    rewrite exp_0 in G. assert ((0 - 1) * 1 + 1 <= (u - 1) * exp u + 1); [|lra].
    apply G. intros v [V _]. pose proof (exp_pos v). nra. }
  pose proof (growing _ _ 0 d P (fun v _ => E v)) as G. simpl in G. rewrite exp_0 in G.
  assert ((0 - 2) * 1 + 0 + 2 <= (d - 2) * exp d + d + 2) by (apply G; intros v [V _]; now apply S).
  lra.
Qed.

Lemma div_neg a b : a < 0 -> 0 < b -> a / b < 0.
Proof.
  intros A B. unfold Rdiv. assert (0 < / b) by now apply Rinv_0_lt_compat. nra.
Qed.

Lemma INR_above x : exists n, x < INR n.
Proof.
  destruct (archimed x) as [A _]. exists (Z.to_nat (up x)).
  destruct (Z_lt_le_dec (up x) 0) as [N|N].
  - replace (Z.to_nat (up x)) with 0%nat by lia. simpl. apply Rlt_trans with (1 := A). now apply IZR_lt.
  - rewrite INR_IZR_INZ, Z2Nat.id by lia. exact A.
Qed.
