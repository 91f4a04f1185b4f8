(** The transformer from tokens: its first layer writes the state, and its second one reads the last unmatched bracket. *)

Require Import Reals Lra Lia Psatz List Arith.
From Formal.common Require Import Sums.
From Formal.bounded_dyck Require Import Pairs Words Sufficiency Corollaries.
Import ListNotations.
Open Scope R_scope.

(** The coordinate of the signed count behind LN, after a prefix of this depth. *)
Definition seen (d : nat) : R := INR d / sqrt (1 + INR d * INR d).

(** Two rectified units: a ramp over the middle third between two of these values. *)
Definition ramp (a b x : R) : R := relu (3 * (x - a) / (b - a) - 1) - relu (3 * (x - a) / (b - a) - 2).
Definition reached (m : nat) (x : R) : R := match m with O => 1 | S below => ramp (seen below) (seen m) x end.
Definition deeper (D m : nat) (x : R) : R := if m <? D then reached (S m) x else 0.

(** The unit of a state of depth m, whose bracket is the position's for b = 1, and another one for b = 0. *)
Definition state_unit (D : nat) (b : R) (m : nat) (x : R) : R := relu (b + reached m x - deeper D m x - 1).

Lemma seen_after k D w s : run k D [] w = Some s -> LN 2 (uniform mark signed w) 1 = seen (length s).
Proof.
  intro H. pose proof (pos_INR (length w)) as Pl.
  assert (P : 0 < / (1 + INR (length w))) by (apply Rinv_0_lt_compat; lra).
  assert (U0 : uniform mark signed w 0 = / (1 + INR (length w))).
  { unfold uniform. rewrite signed_nothing. simpl mark. ring. }
  assert (U1 : uniform mark signed w 1 = / (1 + INR (length w)) * INR (length s)).
  { unfold uniform. rewrite (signed_count k D w [] s H). simpl mark. simpl (INR (length [])). ring. }
  set (P' := / (1 + INR (length w))) in *. set (d := INR (length s)) in *.
  assert (N : norm 2 (uniform mark signed w) = P' * sqrt (1 + d * d)).
  { unfold norm, dot. cbn [Sum]. rewrite U0, U1.
    match goal with |- sqrt ?x = _ => replace x with ((P' * P') * (1 + d * d)) by ring end.
    rewrite sqrt_mult by nra. rewrite sqrt_square by lra. reflexivity. }
  assert (Q : 0 < sqrt (1 + d * d)) by (apply sqrt_lt_R0; nra).
  unfold LN, seen. rewrite N, U1. fold d. field. split; lra.
Qed.

Lemma seen_grows m n : (m < n)%nat -> seen m < seen n.
Proof.
  intro L. pose proof (lt_INR m n L) as Ln. pose proof (pos_INR m) as Pm. unfold seen.
  set (a := INR m) in *. set (b := INR n) in *.
  assert (Qa : 0 < sqrt (1 + a * a)) by (apply sqrt_lt_R0; nra).
  assert (Qb : 0 < sqrt (1 + b * b)) by (apply sqrt_lt_R0; nra).
  assert (Sa : sqrt (1 + a * a) * sqrt (1 + a * a) = 1 + a * a) by (apply sqrt_sqrt; nra).
  assert (Sb : sqrt (1 + b * b) * sqrt (1 + b * b) = 1 + b * b) by (apply sqrt_sqrt; nra).
  set (p := sqrt (1 + a * a)) in *. set (q := sqrt (1 + b * b)) in *.
  assert (C : a * q < b * p).
  { apply Rsqr_incrst_0; [|nra|nra]. unfold Rsqr.
    replace (a * q * (a * q)) with (a * a * (q * q)) by ring. replace (b * p * (b * p)) with (b * b * (p * p)) by ring.
    rewrite Sa, Sb. nra. }
  apply (Rmult_lt_reg_r (p * q)); [nra|].
  replace (a / p * (p * q)) with (a * q) by (field; lra). replace (b / q * (p * q)) with (b * p) by (field; lra). exact C.
Qed.

Lemma seen_rises m n : (m <= n)%nat -> seen m <= seen n.
Proof. intro L. destruct (Nat.eq_dec m n) as [->|N]; [lra|]. left. apply seen_grows. lia. Qed.

Lemma ramp_at a b x : a < b -> (x <= a -> ramp a b x = 0) /\ (b <= x -> ramp a b x = 1).
Proof.
  intro L. unfold ramp, relu. split; intro C.
  - assert (3 * (x - a) / (b - a) <= 0).
    { apply (Rmult_le_reg_r (b - a)); [lra|]. replace (3 * (x - a) / (b - a) * (b - a)) with (3 * (x - a)) by (field; lra). lra. }
    rewrite !Rmax_left by lra. ring.
  - assert (3 <= 3 * (x - a) / (b - a)).
    { apply (Rmult_le_reg_r (b - a)); [lra|]. replace (3 * (x - a) / (b - a) * (b - a)) with (3 * (x - a)) by (field; lra). lra. }
    rewrite !Rmax_right by lra. ring.
Qed.

Lemma reached_at m d : reached m (seen d) = if m <=? d then 1 else 0.
Proof.
  destruct m as [|m]; [reflexivity|]. cbn [reached].
  destruct (ramp_at (seen m) (seen (S m)) (seen d) (seen_grows m (S m) ltac:(lia))) as [Low High].
  destruct (Nat.leb_spec (S m) d); [apply High|apply Low]; apply seen_rises; lia.
Qed.

(** @statement Bounded Dyck: Transformer from tokens
    @clause the first layer knows the state
    @kind clause
    @hypotheses any number k of types and D of levels, any prefix w of bounded Dyck, of any length; uniform attention over START
      and the prefix, with values START (1, 0), open brackets (0, 1), closed ones (0, -1), and LN behind it; x is its second coordinate
    @formula x is d / sqrt(1 + d^2) with d the depth; and the unit relu(b + [depth >= m] - [depth >= m + 1] - 1), whose two
      steps are ramps in x, is b if m is the depth and else 0, for b one or zero and each m up to D
    @note b says whether the position's bracket is the state's. A position sees its own prefix, by the causal mask. *)
Theorem first_layer_knows_the_state :
  forall k D w s, run k D [] w = Some s ->
  let x := LN 2 (uniform mark signed w) 1 in
  x = seen (length s) /\
  forall m b, (m <= D)%nat -> b = 0 \/ b = 1 ->
  (m = length s -> state_unit D b m x = b) /\ (m <> length s -> state_unit D b m x = 0).
Proof.
  intros k D w s H x. split; [exact (seen_after k D w s H)|]. intros m b Lm B.
  assert (E : stack_of k D []) by (split; [constructor|simpl; lia]).
  destruct (run_stack k D [] w s E H) as [[_ L] _].
  unfold x. rewrite (seen_after k D w s H). unfold state_unit, deeper. rewrite !reached_at.
  destruct (Nat.ltb_spec m D), (Nat.leb_spec m (length s)), (Nat.leb_spec (S m) (length s));
    try lia; unfold relu; (split; intro M; [try (exfalso; lia)|try (exfalso; lia)]);
    destruct B as [-> | ->]; (rewrite Rmax_left by lra; reflexivity) || (rewrite Rmax_right by lra; ring).
Qed.

(** What softmax attention gathers from START and a prefix: the sum before LN over the normaliser. *)
Definition normaliser (Z : state -> state -> R) (q : state) (w : list bracket) : R :=
  exp (Z q Start) + gather (fun s => exp (Z q s)) 0 w.
Definition mixed (V : state -> nat -> R) (Z : state -> state -> R) (q : state) (w : list bracket) (e : nat) : R :=
  / normaliser Z q w * before_LN V Z q w e.

Lemma gather_positive add d w : (forall s, 0 < add s) -> 0 <= gather add d w.
Proof.
  intro P. revert d. induction w as [|b w IH]; intro d; cbn [gather]; [lra|].
  pose proof (P (At b (behind d b))). pose proof (IH (behind d b)). lra.
Qed.

Lemma normaliser_positive Z q w : 0 < normaliser Z q w.
Proof.
  unfold normaliser. pose proof (exp_pos (Z q Start)).
  pose proof (gather_positive (fun s => exp (Z q s)) 0 w (fun s => exp_pos (Z q s))). lra.
Qed.

Lemma before_LN_loud k D Z c q w s : under_11 k D Z c q -> run k D [] w = Some s ->
  0 < norm (k * D + 1) (before_LN (values k D c) Z q w).
Proof.
  intros B H. destruct (sums k D Z c q w s B H) as [_ A1]. apply sqrt_lt_R0.
  apply (Sum_pos _ _ (k * D)%nat); [intros; apply Rle_0_sqr|lia|]. rewrite A1. pose proof (exp_pos (Z q Start)). nra.
Qed.

Lemma mixed_LN k D Z c q w s e : under_11 k D Z c q -> run k D [] w = Some s ->
  LN (k * D + 1) (mixed (values k D c) Z q w) e = LN (k * D + 1) (before_LN (values k D c) Z q w) e.
Proof.
  intros B H. apply (LN_scaled (k * D + 1) (/ normaliser Z q w) (before_LN (values k D c) Z q w) e);
    [apply Rinv_0_lt_compat, normaliser_positive|exact (before_LN_loud k D Z c q w s B H)].
Qed.

(** @statement Bounded Dyck: Transformer from tokens
    @clause the second attention may look like anything that is balanced
    @kind clause
    @hypotheses logits Z with (11) at the query q, and numbers t that are added to them, the same for both brackets of a pair; values
      as in Theorem 1, V_close(i, l - 1) = -exp(c_il) V_open(i, l)
    @formula the logits Z + t have (11) with the same c; matched pairs add nothing; and LN of what softmax gathers after a prefix of
      bounded Dyck is LN of the sum (12), whatever the normaliser *)
Theorem any_balanced_attention :
  forall k D Z t c q w s, under_11 k D Z c q ->
  (forall i l, (i < k)%nat -> (1 <= l <= D)%nat -> t (At (Open i) l) = t (At (Close i) (pred l))) ->
  run k D [] w = Some s ->
  let Z' := fun q' r => Z q' r + t r in
  under_11 k D Z' c q /\
  (forall i l e, (i < k)%nat -> (1 <= l <= D)%nat -> Words.pair (fun r => u (values k D c) Z' q r e) i l = 0) /\
  forall e, LN (k * D + 1) (mixed (values k D c) Z' q w) e = LN (k * D + 1) (before_LN (values k D c) Z' q w) e.
Proof.
  intros k D Z t c q w s B T H Z'.
  assert (B' : under_11 k D Z' c q).
  { intros i l Li Ll. unfold Z'. rewrite (T i l Li Ll). pose proof (B i l Li Ll). lra. }
  split; [exact B'|]. split.
  - intros i l e Li Ll. exact (silent_pairs k D Z' c q e B' i l Li Ll).
  - intro e. exact (mixed_LN k D Z' c q w s e B' H).
Qed.

(** @statement Bounded Dyck: Transformer from tokens
    @clause the head reads the last unmatched bracket
    @kind clause
    @hypotheses any number k of types and D of levels, any probability p of an open bracket, logits with (11) at the query and bounds
      lo and hi of them, and the values of Theorem 1
    @formula after every prefix of bounded Dyck, of any length, the head at LN of what softmax attention gathers is the distribution of
      the next bracket (Definition 1)
    @note The transformer's decoder has the logarithms of these distributions where they are positive. *)
Theorem head_reads_softmax_attention :
  forall k D p Z c q lo hi w s o, under_11 k D Z c q -> (forall t, lo <= Z q t <= hi) -> run k D [] w = Some s ->
  head k D p (smallest k D lo hi) (LN (k * D + 1) (mixed (values k D c) Z q w)) o = next k D p s o.
Proof.
  intros k D p Z c q lo hi w s o B Bound H. rewrite <- (balance_suffices k D p Z c q lo hi w s o B Bound H).
  assert (F : forall i l, unmatched D (smallest k D lo hi) (LN (k * D + 1) (mixed (values k D c) Z q w)) i l
    = unmatched D (smallest k D lo hi) (LN (k * D + 1) (before_LN (values k D c) Z q w)) i l).
  { intros i l. unfold unmatched. now rewrite (mixed_LN k D Z c q w s _ B H). }
  unfold head, top, none. f_equal.
  - apply Sum_ext. intros i _. apply Sum_ext. intros m _. rewrite F.
    rewrite (Sum_ext k _ (fun j => unmatched D (smallest k D lo hi) (LN (k * D + 1) (before_LN (values k D c) Z q w)) j (S (S m))) (fun j _ => F j (S (S m)))).
    reflexivity.
  - rewrite (Sum_ext k _ (fun j => unmatched D (smallest k D lo hi) (LN (k * D + 1) (before_LN (values k D c) Z q w)) j 1) (fun j _ => F j 1%nat)).
    reflexivity.
Qed.
