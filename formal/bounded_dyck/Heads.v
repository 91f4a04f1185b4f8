(** Appendix B.2: several heads, each with a softmax of its own. What is left of matched pairs at great lengths. *)

Require Import Reals Lra Lia.
From Formal.common Require Import Calculus Sums.
Open Scope R_scope.

Definition Rabs_sum (H : nat) (r : nat -> R) : R := Sum H (fun h => Rabs (r h)).

Lemma Sum_abs H f : Rabs (Sum H f) <= Rabs_sum H f.
Proof.
  unfold Rabs_sum. induction H; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

(** Fractions with one pole each, all different, do not add up to a constant. *)
Lemma unlike_poles H r rho c : (forall h, (h < H)%nat -> 0 < rho h) ->
  (forall h g, (h < H)%nat -> (g < H)%nat -> h <> g -> rho h <> rho g) ->
  (forall n : nat, (1 <= n)%nat -> Sum H (fun h => r h / (rho h + INR n)) = c) ->
  c = 0 /\ forall h, (h < H)%nat -> r h = 0.
Proof.
  revert r c. induction H as [|H IH]; intros r c P D E.
  - simpl in E. rewrite <- (E 1%nat) by lia. split; [reflexivity|lia].
  - assert (Zero : c = 0).
    { destruct (Req_dec c 0) as [|N]; [assumption|exfalso].
      assert (Pc : 0 < Rabs c) by now apply Rabs_pos_lt.
      assert (Bound : forall n, (1 <= n)%nat -> Rabs c * INR n <= Rabs_sum (S H) r).
      { intros n Ln. assert (Pn : 0 < INR n) by (apply lt_0_INR; lia). rewrite <- (E n Ln).
        apply Rle_trans with (Rabs_sum (S H) (fun h => r h / (rho h + INR n)) * INR n).
        - apply Rmult_le_compat_r; [lra|apply Sum_abs].
        - unfold Rabs_sum. rewrite <- Sum_scal_r. apply Sum_le. intros h Lh. pose proof (P h Lh).
          unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_pos_eq (rho h + INR n)) by lra.
          pose proof (Rabs_pos (r h)). rewrite Rmult_assoc. rewrite <- (Rmult_1_r (Rabs (r h))) at 2.
          apply Rmult_le_compat_l; [assumption|]. apply (Rmult_le_reg_r (rho h + INR n)); [lra|].
          replace (/ (rho h + INR n) * INR n * (rho h + INR n)) with (INR n) by (field; lra). lra. }
      destruct (INR_above (Rabs_sum (S H) r / Rabs c)) as [n Hn].
      pose proof (Bound (S n) ltac:(lia)) as B. rewrite S_INR in B.
      assert (Rabs_sum (S H) r < Rabs c * INR n); [|nra].
      apply (Rmult_lt_reg_r (/ Rabs c)); [now apply Rinv_0_lt_compat|].
      replace (Rabs c * INR n * / Rabs c) with (INR n) by (field; lra). exact Hn. }
    split; [exact Zero|].
    assert (Less : forall n, (1 <= n)%nat ->
      Sum H (fun h => r h * (rho H - rho h) / (rho h + INR n)) = - r H - Sum H r).
    { intros n Ln. pose proof (E n Ln) as A. rewrite Zero in A. cbn [Sum] in A.
      assert (Pn : 0 < INR n) by (apply lt_0_INR; lia). pose proof (P H ltac:(lia)).
      assert (B : Sum H (fun h => r h / (rho h + INR n)) * (rho H + INR n) = - r H).
      { replace (Sum H (fun h => r h / (rho h + INR n))) with (- (r H / (rho H + INR n))) by lra. field. lra. }
      rewrite <- B, <- Sum_scal_r, <- Sum_minus. apply Sum_ext. intros h Lh. pose proof (P h ltac:(lia)). field. lra. }
    destruct (IH (fun h => r h * (rho H - rho h)) (- r H - Sum H r)) as [C R].
    + intros h L. apply P. lia.
    + intros h g Lh Lg. apply D; lia.
    + exact Less.
    + assert (Below : forall h, (h < H)%nat -> r h = 0).
      { intros h L. pose proof (R h L) as A. pose proof (D H h ltac:(lia) ltac:(lia) ltac:(lia)).
        apply Rmult_integral in A. destruct A; [assumption|lra]. }
      intros h L. destruct (Nat.eq_dec h H) as [->|N]; [|apply Below; lia].
      rewrite (Sum_zero H r Below) in C. lra.
Qed.

(** @statement Bounded Dyck: Appendix B.2
    @clause heads of unlike masses
    @kind clause
    @hypotheses H heads; delta_h and zeta_h are the value and the mass that a pair of each of two kinds has in head h, an
      entry of the values at a time; masses are positive, and no two heads have the same ratio of both; for one pair of the
      first kind and n of the second, n = 1, 2, .., what is left at great lengths is one number c
    @formula delta_h / zeta_h is the same for both kinds in each head, and these numbers sum to c
    @note c is minus the query's own entry where a residual link joins before LN, and 0 where none does. That a layer which
      is right at every length leaves nothing else is the clause "nothing is left of pairs". *)
Theorem unlike_heads_are_balanced_each :
  forall H delta zeta delta' zeta' c,
  (forall h, (h < H)%nat -> 0 < zeta h /\ 0 < zeta' h) ->
  (forall h g, (h < H)%nat -> (g < H)%nat -> h <> g -> zeta h / zeta' h <> zeta g / zeta' g) ->
  (forall n : nat, (1 <= n)%nat ->
    Sum H (fun h => (delta h + INR n * delta' h) / (zeta h + INR n * zeta' h)) = c) ->
  (forall h, (h < H)%nat -> delta h / zeta h = delta' h / zeta' h) /\ Sum H (fun h => delta h / zeta h) = c.
Proof.
  intros H delta zeta delta' zeta' c P D E.
  set (rho := fun h => zeta h / zeta' h).
  set (r := fun h => (delta h - delta' h * rho h) / zeta' h).
  assert (Each : c - Sum H (fun h => delta' h / zeta' h) = 0 /\ forall h, (h < H)%nat -> r h = 0).
  { apply (unlike_poles H r rho); [|exact D|].
    - intros h L. destruct (P h L). apply Rdiv_lt_0_compat; assumption.
    - intros n Ln. rewrite <- (E n Ln), <- Sum_minus. apply Sum_ext. intros h L. destruct (P h L) as [A B].
      assert (Pn : 0 < INR n * zeta' h) by (apply Rmult_lt_0_compat; [apply lt_0_INR; lia|exact B]).
      unfold r, rho. field. lra. }
  destruct Each as [C R].
  assert (Same : forall h, (h < H)%nat -> delta h / zeta h = delta' h / zeta' h).
  { intros h L. destruct (P h L) as [A B]. pose proof (R h L) as Q. unfold r, rho in Q.
    assert (N : delta h - delta' h * (zeta h / zeta' h) = 0).
    { apply (Rmult_eq_reg_r (/ zeta' h)); [unfold Rdiv in Q; lra|]. apply Rinv_neq_0_compat. lra. }
    replace (delta h) with (delta' h * (zeta h / zeta' h)) by lra. field. lra. }
  split; [exact Same|]. rewrite (Sum_ext H _ _ Same). lra.
Qed.
