(** Balance: matched pairs of brackets add n delta to what a closing query gathers, and vanish exactly under (11).

    W is the width of the values; states are numbers; V s is the value of state s, Z q s its logit at query q. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
Open Scope R_scope.

(** (12) *)
Definition u (V : nat -> nat -> R) (Z : nat -> nat -> R) (q s i : nat) : R := V s i * exp (Z q s).

(** What query q gathers from the counts N of S states, before LN. *)
Definition gathered (S : nat) (V Z : nat -> nat -> R) (N : nat -> R) (q i : nat) : R :=
  Sum S (fun s => N s * u V Z q s i).

(** The same with attention by softmax: every weight is over the total of all weights. *)
Definition attended (S : nat) (V Z : nat -> nat -> R) (N : nat -> R) (q i : nat) : R :=
  Sum S (fun s => N s * exp (Z q s) / Sum S (fun r => N r * exp (Z q r)) * V s i).

(** LN without a floor. *)
Definition LN (W : nat) (v : nat -> R) (i : nat) : R := v i / norm W v.

Lemma norm_scaled W c v : 0 < c -> norm W (fun i => c * v i) = c * norm W v.
Proof.
  intro P. unfold norm.
  replace (c * sqrt (dot W v v)) with (sqrt (c ^ 2) * sqrt (dot W v v)) by (rewrite sqrt_pow2 by lra; reflexivity).
  rewrite <- sqrt_mult; [|apply pow2_ge_0|apply dot_nonneg]. f_equal. unfold dot. rewrite <- Sum_scal. apply Sum_ext. intros. ring.
Qed.

Lemma LN_scaled W c v i : 0 < c -> 0 < norm W v -> LN W (fun i => c * v i) i = LN W v i.
Proof. intros P Q. unfold LN. rewrite norm_scaled by exact P. field. lra. Qed.

(** @statement Bounded Dyck: Equation 13
    @kind clause
    @hypotheses any states, values of any width, logits and counts, any number n of pairs (o, c), with a
      positive total weight; the sum u_0 + n delta is not zero
    @formula LN of what softmax attention gathers after n pairs is LN(u_0 + n (u(q, open) + u(q, close)))
    @note LN without a floor and without mean subtraction, which is linear and belongs to the values. *)
Theorem equation13 :
  forall S W V Z N q o c n i, (o < S)%nat -> (c < S)%nat ->
  0 < Sum S (fun r => (N r + n * (kron r o + kron r c)) * exp (Z q r)) ->
  let after s := N s + n * (kron s o + kron s c) in
  let sums i := gathered S V Z N q i + n * (u V Z q o i + u V Z q c i) in
  0 < norm W sums ->
  LN W (attended S V Z after q) i = LN W sums i.
Proof.
  intros S W V Z N q o c n i Lo Lc Pt after sums Pn.
  set (t := Sum S (fun r => after r * exp (Z q r))) in *.
  assert (E : forall j, attended S V Z after q j = / t * sums j).
  { intro j. unfold attended. fold t.
    rewrite (Sum_ext S _ (fun s => / t * (N s * u V Z q s j + n * (kron s o * u V Z q s j + kron s c * u V Z q s j)))).
    - rewrite Sum_scal, Sum_plus, Sum_scal, Sum_plus.
      rewrite (Sum_kron S o (fun s => u V Z q s j) Lo), (Sum_kron S c (fun s => u V Z q s j) Lc). reflexivity.
    - intros s _. unfold u, after. field. unfold t, after. lra. }
  assert (Pi : 0 < / t) by now apply Rinv_0_lt_compat.
  rewrite <- (LN_scaled W (/ t) sums i Pi Pn). unfold LN. rewrite E. f_equal.
  unfold norm, dot. f_equal. apply Sum_ext. intros. now rewrite !E.
Qed.

(** (11) on a set of queries: the difference of a pair's logits does not depend on the query. *)
Definition balanced (Q : nat -> Prop) (Z : nat -> nat -> R) (o c : nat) : Prop :=
  forall q q', Q q -> Q q' -> Z q o - Z q c = Z q' o - Z q' c.

(** (14): the pair adds nothing. *)
Definition silent (W : nat) (Q : nat -> Prop) (V Z : nat -> nat -> R) (o c : nat) : Prop :=
  forall q i, Q q -> (i < W)%nat -> u V Z q o i + u V Z q c i = 0.

(** @statement Bounded Dyck: Balance of values
    @kind clause
    @hypotheses one pair of states, any set of queries with q_0 in it, values of any width; V_open is not zero
    @formula u(q, open) + u(q, close) = 0 at all these queries if and only if Z_(q,open) - Z_(q,close) does not
      depend on q (11) and V_close = -exp(Z_(q0,open) - Z_(q0,close)) V_open
    @note For k >= 2 and for k = 1 alike: that (14) is needed is necessity_of_silence. *)
Theorem balance_of_values :
  forall W (Q : nat -> Prop) V Z o c q0, Q q0 -> (exists i, (i < W)%nat /\ V o i <> 0) ->
  (silent W Q V Z o c <->
   balanced Q Z o c /\ forall i, (i < W)%nat -> V c i = - exp (Z q0 o - Z q0 c) * V o i).
Proof.
  intros W Q V Z o c q0 H0 [i0 [L0 N0]].
  assert (Val : forall q i, u V Z q o i + u V Z q c i = 0 <-> V c i = - exp (Z q o - Z q c) * V o i).
  { intros q i. unfold u. pose proof (exp_pos (Z q c)) as P.
    assert (E : exp (Z q o) = exp (Z q o - Z q c) * exp (Z q c)) by (rewrite <- exp_plus; f_equal; ring).
    rewrite E. split; intro H.
    - apply (Rmult_eq_reg_r (exp (Z q c))); [|lra]. lra.
    - rewrite H. ring. }
  split.
  - intro H. assert (Vc : forall q i, Q q -> (i < W)%nat -> V c i = - exp (Z q o - Z q c) * V o i).
    { intros q i Hq Li. apply Val. now apply H. }
    split; [|intros; now apply Vc]. intros q q' Hq Hq'.
    pose proof (Vc q i0 Hq L0) as A. rewrite (Vc q' i0 Hq' L0) in A.
    apply exp_inv. apply (Rmult_eq_reg_r (V o i0)); [lra|exact N0].
  - intros [B Vc] q i Hq Li. apply Val. rewrite (Vc i Li), (B q0 q H0 Hq). reflexivity.
Qed.

(** Convergence entry by entry. *)
Definition converges (W : nat) (v : nat -> nat -> R) (w : nat -> R) : Prop :=
  forall i, (i < W)%nat -> is_lim_seq (fun n => v n i) (w i).

Lemma is_lim_seq_Sum W (a : nat -> nat -> R) (b : nat -> R) :
  (forall i, (i < W)%nat -> is_lim_seq (fun n => a n i) (b i)) ->
  is_lim_seq (fun n => Sum W (a n)) (Sum W b).
Proof.
  induction W; intro H; simpl.
  - apply is_lim_seq_const.
  - apply (is_lim_seq_plus' (fun n => Sum W (a n)) (fun n => a n W)).
    + apply IHW. intros. apply H. lia.
    + apply H. lia.
Qed.

(** @statement Bounded Dyck: Theorem 1, necessity
    @clause a pair adds nothing (14)
    @kind part
    @hypotheses any width, any sum x, any delta that is not zero
    @formula LN(x + n delta) tends to LN(delta), entry by entry, as n grows *)
Theorem pairs_hide_the_stack :
  forall W x delta, (exists i, (i < W)%nat /\ delta i <> 0) ->
  converges W (fun n => LN W (fun i => x i + INR n * delta i)) (LN W delta).
Proof.
  intros W x delta [i0 [L0 N0]] i Li.
  assert (Pd : 0 < norm W delta).
  { apply sqrt_lt_R0. apply (Sum_pos W _ i0); [intros; apply Rle_0_sqr|exact L0|nra]. }
  (* LN of x/n + delta *)
  set (e := fun n j => x j * / INR (S n) + delta j).
  assert (Inv : is_lim_seq (fun n => / INR (S n)) 0).
  { apply (is_lim_seq_incr_1 (fun n => / INR n)).
    apply (is_lim_seq_inv INR p_infty); [apply is_lim_seq_INR|discriminate]. }
  assert (Le : forall j, is_lim_seq (fun n => e n j) (delta j)).
  { intro j. unfold e. replace (Finite (delta j)) with (Finite (x j * 0 + delta j)) by (f_equal; ring).
    apply is_lim_seq_plus'; [|apply is_lim_seq_const].
    apply (is_lim_seq_scal_l (fun n => / INR (S n)) (x j) 0). exact Inv. }
  assert (Ln : is_lim_seq (fun n => norm W (e n)) (norm W delta)).
  { unfold norm. apply (is_lim_seq_continuous sqrt (fun n => dot W (e n) (e n))).
    - apply continuity_pt_sqrt. apply dot_nonneg.
    - unfold dot. apply (is_lim_seq_Sum W (fun n j => e n j * e n j) (fun j => delta j * delta j)).
      intros j _. apply (is_lim_seq_mult' (fun n => e n j) (fun n => e n j)); apply Le. }
  apply (is_lim_seq_incr_1 (fun n => LN W (fun i => x i + INR n * delta i) i)).
  apply (is_lim_seq_ext_loc (fun n => e n i / norm W (e n))).
  - exists 0%nat. intros n _. pose proof (lt_0_INR (S n) ltac:(lia)) as Pn.
    unfold LN.
    assert (S1 : norm W (fun j => x j + INR (S n) * delta j) = INR (S n) * norm W (e n)).
    { rewrite <- norm_scaled by exact Pn. unfold norm, dot. f_equal. apply Sum_ext. intros. unfold e. field. lra. }
    rewrite S1. replace (x i + INR (S n) * delta i) with (INR (S n) * e n i) by (unfold e; field; lra).
    destruct (Req_dec (norm W (e n)) 0) as [Z|N].
    + rewrite Z, Rmult_0_r. unfold Rdiv. rewrite Rinv_0. ring.
    + field. lra.
  - unfold LN. apply (is_lim_seq_div' (fun n => e n i) (fun n => norm W (e n))); [apply Le|exact Ln|lra].
Qed.

(** A head that is continuous: outputs converge where features do. *)
Definition continuous_head (W : nat) (head : (nat -> R) -> R) : Prop :=
  forall v w, converges W v w -> is_lim_seq (fun n => head (v n)) (head w).

(** Two sums whose outputs stay apart after any number of the same pairs: these add nothing. *)
Lemma head_hides W (head : (nat -> R) -> R) x y delta a b : continuous_head W head -> a <> b ->
  (forall n, head (LN W (fun i => x i + INR n * delta i)) = a) ->
  (forall n, head (LN W (fun i => y i + INR n * delta i)) = b) ->
  forall i, (i < W)%nat -> delta i = 0.
Proof.
  intros C D Ha Hb.
  destruct (differ delta (fun _ => 0) W) as [N|Z]; [exfalso|exact Z].
  pose proof (C _ _ (pairs_hide_the_stack W x delta N)) as A.
  pose proof (C _ _ (pairs_hide_the_stack W y delta N)) as B.
  apply (is_lim_seq_ext _ (fun _ => a)) in A; [|exact Ha].
  apply (is_lim_seq_ext _ (fun _ => b)) in B; [|exact Hb].
  pose proof (is_lim_seq_unique _ _ A) as UA. pose proof (is_lim_seq_unique _ _ B) as UB.
  rewrite Lim_seq_const in UA, UB. apply D. congruence.
Qed.

(** One type of brackets: START is (1, 1), open brackets (1, 0), closed ones (0, 1); the logit of closed brackets is
    - ln(1 + d) at queries of depth d, all others 0. *)
Definition one_type (opens closes d : R) (i : nat) : R :=
  match i with O => 1 + opens | _ => 1 + closes * exp (- ln (1 + d)) end.

(** @statement Bounded Dyck: Theorem 1, necessity
    @clause one type needs no balance
    @kind clause
    @hypotheses k = 1, V_START = (1, 1), V_open = (1, 0), V_close = (0, 1), Z_(q,close) = -ln(1 + d_q), all
      other logits 0
    @formula after any prefix the first entry is 1 + d times the second, so that the features say the depth d;
      what a pair adds is (1, 1/(1 + d)), not zero; and the difference of (11) depends on d
    @note So (14) and (11) are not needed for k = 1. *)
Theorem one_type_needs_no_balance :
  (forall opens closes, 0 <= closes <= opens ->
     one_type opens closes (opens - closes) 0 = (1 + (opens - closes)) * one_type opens closes (opens - closes) 1) /\
  (forall d, 0 <= d -> (1 <> 0 /\ exp (- ln (1 + d)) <> 0)) /\
  (forall d d', 0 <= d < d' -> 0 - - ln (1 + d) <> 0 - - ln (1 + d')).
Proof.
  repeat split.
  - intros opens closes B. unfold one_type. rewrite exp_Ropp, exp_ln by lra. field. lra.
  - lra.
  - apply Rgt_not_eq, exp_pos.
  - intros d d' B. pose proof (ln_increasing (1 + d) (1 + d') ltac:(lra) ltac:(lra)). lra.
Qed.
