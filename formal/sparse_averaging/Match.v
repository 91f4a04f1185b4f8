(** Match2 by one unit and Match3 by one third-order unit: both errors are at most eta = 1/(1 + o). *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums Calculus.
Open Scope R_scope.

(** The cosine of a residue's angle. *)
Definition turn (M k : nat) : R := cos (2 * PI * INR k / INR M).

Lemma turn_period M k : (0 < M)%nat -> turn M k = turn M (k mod M).
Proof.
  intro P. unfold turn. pose proof (lt_INR 0 M P) as PM. simpl in PM.
  rewrite (Nat.div_mod k M) at 1 by lia. rewrite plus_INR, mult_INR.
  replace (2 * PI * (INR M * INR (k / M) + INR (k mod M)) / INR M)
    with (2 * PI * INR (k mod M) / INR M + 2 * INR (k / M) * PI) by (field; lra).
  apply cos_period.
Qed.

Lemma turn_match M k : (0 < M)%nat -> (k mod M = 0)%nat -> turn M k = 1.
Proof.
  intros P E. rewrite turn_period, E by exact P. unfold turn. simpl.
  replace (2 * PI * 0 / INR M) with 0 by (unfold Rdiv; ring). apply cos_0.
Qed.

(** No sum that does not vanish mod M comes nearer than 1. *)
Lemma turn_other M k : (2 <= M)%nat -> (k mod M <> 0)%nat -> turn M k <= cos (2 * PI / INR M).
Proof.
  intros HM N. rewrite turn_period by lia. pose proof (Nat.mod_upper_bound k M ltac:(lia)) as U.
  set (d := (k mod M)%nat) in *. unfold turn.
  assert (PM : 2 <= INR M) by (apply (le_INR 2); exact HM).
  assert (Pd : 1 <= INR d) by (apply (le_INR 1); lia).
  assert (Ud : INR d <= INR M - 1).
  { pose proof (le_INR d (M - 1) ltac:(lia)) as Q. rewrite minus_INR in Q by lia. simpl in Q. exact Q. }
  pose proof PI_RGT_0 as PP.
  assert (Pm : 0 < / INR M) by (apply Rinv_0_lt_compat; lra).
  assert (Decr : forall x y, 0 <= x -> x <= y -> y <= PI -> cos y <= cos x).
  { intros x y Hx [L| ->] Hy; [|lra]. apply Rlt_le, cos_decreasing_1; lra. }
  assert (Half : 2 * PI / INR M <= PI).
  { apply (Rmult_le_reg_r (INR M)); [lra|]. replace (2 * PI / INR M * INR M) with (2 * PI) by (field; lra). nra. }
  assert (Start : 0 <= 2 * PI / INR M) by (apply Rmult_le_pos; lra).
  assert (Step : forall e, 1 <= e -> 2 * PI / INR M <= 2 * PI * e / INR M).
  { intros e He. unfold Rdiv. apply Rmult_le_compat_r; [lra|]. nra. }
  destruct (Rle_lt_dec (2 * PI * INR d / INR M) PI) as [L|L].
  - apply Decr; [exact Start|now apply Step|exact L].
  - replace (cos (2 * PI * INR d / INR M)) with (cos (2 * PI * (INR M - INR d) / INR M)).
    + apply Decr; [exact Start|apply Step; lra|].
      replace (2 * PI * (INR M - INR d) / INR M) with (2 * PI - 2 * PI * INR d / INR M) by (field; lra). lra.
    + replace (2 * PI * (INR M - INR d) / INR M) with (- (2 * PI * INR d / INR M) + 2 * INR 1 * PI) by (simpl; field; lra).
      rewrite cos_period. apply cos_neg.
Qed.

Lemma turn_gap M : (2 <= M)%nat -> 0 < 1 - cos (2 * PI / INR M).
Proof.
  intro HM. assert (PM : 2 <= INR M) by (apply (le_INR 2); exact HM). pose proof PI_RGT_0 as PP.
  assert (P : 0 < 2 * PI / INR M) by (apply Rdiv_lt_0_compat; lra).
  assert (Half : 2 * PI / INR M <= PI).
  { apply (Rmult_le_reg_r (INR M)); [lra|]. replace (2 * PI / INR M * INR M) with (2 * PI) by (field; lra). nra. }
  pose proof (cos_decreasing_1 0 (2 * PI / INR M) ltac:(lra) ltac:(lra) ltac:(lra) ltac:(lra) P) as C.
  rewrite cos_0 in C. lra.
Qed.

(** N tokens x_j, a blank token of score c s_0 and value 0; all other values are 1. *)
Definition match2 (N M : nat) (c s0 : R) (x : nat -> nat) (i : nat) : R :=
  let ones := Sum N (fun j => exp (c * turn M (x i + x j))) in ones / (ones + exp (c * s0)).

Definition matched2 (N M : nat) (x : nat -> nat) (i : nat) : Prop :=
  exists j, (j < N)%nat /\ ((x i + x j) mod M = 0)%nat.

Lemma share_mono a b w : 0 <= a <= b -> 0 < w -> a / (a + w) <= b / (b + w).
Proof.
  intros [P L] Pw. apply (Rmult_le_reg_r ((a + w) * (b + w))); [nra|].
  replace (a / (a + w) * ((a + w) * (b + w))) with (a * (b + w)) by (field; lra).
  replace (b / (b + w) * ((a + w) * (b + w))) with (b * (a + w)) by (field; lra). nra.
Qed.

Lemma share_at_most_one a w : 0 < a -> 0 < w -> a / (a + w) <= 1.
Proof.
  intros Pa Pw. apply (Rmult_le_reg_r (a + w)); [lra|]. replace (a / (a + w) * (a + w)) with a by (field; lra). lra.
Qed.

Lemma share_of_a_match e o : 0 < e -> 1 < o -> e / (e + e / o) = 1 - 1 / (1 + o).
Proof.
  intros Pe Po. replace (e + e / o) with (e * (1 + o) / o) by (field; lra). field. lra.
Qed.

Lemma share_of_no_match e o : 0 < e -> 1 < o -> e / o ^ 2 / (e / o ^ 2 + e / o) = 1 / (1 + o).
Proof.
  intros Pe Po. replace (e / o ^ 2 + e / o) with (e * (1 + o) / o ^ 2) by (field; lra). field. lra.
Qed.

(** @statement Sparse averaging: Match2
    @clause in exact arithmetic
    @kind clause
    @hypotheses any N >= 1 tokens, M >= 2, o > 1; c = (ln N + 2 ln o)/(1 - cos(2 pi/M)), the blank's score c (1
      - ln(o)/c), other scores c cos(2 pi (x_i + x_j)/M); values 1, the blank's 0
    @formula with a match the output is within eta = 1/(1 + o) of one, without one within eta of zero
    @note That three dimensions give these scores is cos(a + b) = cos a cos b - sin a sin b. Tokens are natural
      numbers. *)
Theorem match2_errors :
  forall N M x i o, (0 < N)%nat -> (2 <= M)%nat -> 1 < o ->
  let c := (ln (INR N) + 2 * ln o) / (1 - cos (2 * PI / INR M)) in
  let s0 := 1 - ln o / c in
  let eta := 1 / (1 + o) in
  (matched2 N M x i -> 1 - eta <= match2 N M c s0 x i <= 1) /\
  (~ matched2 N M x i -> 0 <= match2 N M c s0 x i <= eta).
Proof.
  intros N M x i o PN HM Po c s0 eta.
  pose proof (turn_gap M HM) as G. set (g := 1 - cos (2 * PI / INR M)) in *.
  assert (QN : 1 <= INR N) by (apply (le_INR 1); lia).
  assert (LN : 0 <= ln (INR N)) by (rewrite <- ln_1; apply ln_le; lra).
  assert (LO : 0 < ln o) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (Pc : 0 < c) by (apply Rdiv_lt_0_compat; lra).
  assert (Cg : c * g = ln (INR N) + 2 * ln o) by (unfold c; field; lra).
  assert (Blank : exp (c * s0) = exp c / o).
  { unfold s0. replace (c * (1 - ln o / c)) with (c + - ln o) by (field; lra).
    rewrite exp_plus, exp_Ropp, exp_ln by lra. reflexivity. }
  assert (Near : exp (c * (1 - g)) = exp c / (INR N * o ^ 2)).
  { replace (c * (1 - g)) with (c + - (ln (INR N) + (ln o + ln o))) by lra.
    rewrite exp_plus, exp_Ropp, !exp_plus, !exp_ln by lra. unfold Rdiv. f_equal. f_equal. ring. }
  pose proof (exp_pos c) as Pe. set (e := exp c) in *.
  unfold match2. cbv zeta. rewrite Blank.
  set (ones := Sum N (fun j => exp (c * turn M (x i + x j)))).
  assert (P1 : 0 < ones) by (apply Sum_all_pos; [exact PN|intros; apply exp_pos]).
  assert (Pb : 0 < e / o) by (apply Rdiv_lt_0_compat; lra).
  split.
  - intros [j [Lj Mj]]. split.
    + assert (e <= ones).
      { pose proof (Sum_ge_term N (fun j => exp (c * turn M (x i + x j))) j (fun k _ => Rlt_le _ _ (exp_pos _)) Lj) as S.
        cbv beta in S. rewrite turn_match, Rmult_1_r in S by (assumption || lia). exact S. }
      pose proof (share_mono e ones (e / o) ltac:(lra) Pb) as S.
      rewrite (share_of_a_match e o Pe Po) in S. exact S.
    + now apply share_at_most_one.
  - intro No. split; [apply Rlt_le, Rdiv_lt_0_compat; lra|].
    assert (ones <= e / o ^ 2).
    { apply Rle_trans with (Sum N (fun _ => e / (INR N * o ^ 2))).
      - apply Sum_le. intros j Lj. rewrite <- Near. apply exp_le. apply Rmult_le_compat_l; [lra|].
        replace (1 - g) with (cos (2 * PI / INR M)) by (unfold g; ring).
        apply turn_other; [exact HM|]. intro E. apply No. now exists j.
      - rewrite Sum_const. right. field. lra. }
    pose proof (share_mono ones (e / o ^ 2) (e / o) ltac:(lra) Pb) as S.
    rewrite (share_of_no_match e o Pe Po) in S. exact S.
Qed.

(** cos(A + B + C) in three products. *)
Lemma three_angles : forall a b c : R,
  4 / 3 * (cos a * cos b * cos c
    + cos (a - 2 * PI / 3) * cos (b - 2 * PI / 3) * cos (c - 2 * PI / 3)
    + cos (a - 4 * PI / 3) * cos (b - 4 * PI / 3) * cos (c - 4 * PI / 3)) = cos (a + b + c).
Proof.
  intros a b c.
  replace (2 * PI / 3) with (2 * (PI / 3)) by field.
  replace (4 * PI / 3) with (2 * (2 * (PI / 3))) by field.
  assert (C2 : cos (2 * (2 * (PI / 3))) = - 1 / 2).
  { rewrite (cos_2a_cos (2 * (PI / 3))), cos_2PI3. field. }
  assert (S2 : sin (2 * (2 * (PI / 3))) = - (sqrt 3 / 2)).
  { rewrite (sin_2a (2 * (PI / 3))), sin_2PI3, cos_2PI3. field. }
  rewrite !cos_minus, C2, S2, cos_2PI3, sin_2PI3, !cos_plus, !sin_plus.
  assert (R : sqrt 3 * sqrt 3 = 3) by (apply sqrt_sqrt; lra).
  set (r := sqrt 3) in *. set (ca := cos a). set (sa := sin a). set (cb := cos b). set (sb := sin b).
  set (cc := cos c). set (sc := sin c).
  assert (R2 : r ^ 2 = 3) by (simpl; lra).
  field_simplify. rewrite ?R2. replace (r ^ 3) with (3 * r) by (simpl; rewrite Rmult_1_r, R; ring). field_simplify. 
  field.
Qed.

(** The angle of a residue, and the scores of the unit: a token is (cos, cos, cos of its angle less k 2 pi/3, 0), the blank
    (0, 0, 0, 1); the score of a pair is c times a sum over four coordinates of products of three numbers, the fourth with
    the weight b. *)
Definition angle (M k : nat) : R := 2 * PI * INR k / INR M.
Definition code (M k e : nat) : R :=
  match e with
  | 0%nat => cos (angle M k)
  | 1%nat => cos (angle M k - 2 * PI / 3)
  | 2%nat => cos (angle M k - 4 * PI / 3)
  | _ => 0
  end.
Definition blank (e : nat) : R := match e with 3%nat => 1 | _ => 0 end.
Definition query (M : nat) (b : R) (k e : nat) : R := match e with 3%nat => b | _ => 4 / 3 * code M k e end.
Definition score3 (c : R) (q v w : nat -> R) : R := c * Sum 4 (fun e => q e * v e * w e).

(** The unit: softmax over all pairs of N tokens and the blank; pairs of tokens have the value 1, all others 0. *)
Definition unit3 (N M : nat) (c b : R) (x : nat -> nat) (i : nat) : R :=
  let q := query M b (x i) in
  let token j := code M (x j) in
  let ones := Sum N (fun j => Sum N (fun k => exp (score3 c q (token j) (token k)))) in
  let mixed := Sum N (fun j => exp (score3 c q (token j) blank) + exp (score3 c q blank (token j))) in
  ones / (ones + (mixed + exp (score3 c q blank blank))).

(** The same with its scores worked out: pairs of a token and the blank, 2N of them, have the score 0, the blank pair the
    weight w. *)
Definition match3 (N M : nat) (c w : R) (x : nat -> nat) (i : nat) : R :=
  let ones := Sum N (fun j => Sum N (fun k => exp (c * turn M (x i + x j + x k)))) in
  ones / (ones + (2 * INR N + w)).

Lemma unit3_is_match3 N M c b x i : (0 < M)%nat -> unit3 N M c b x i = match3 N M c (exp (c * b)) x i.
Proof.
  intro PM. apply lt_INR in PM. simpl in PM. unfold unit3, match3. cbv zeta.
  assert (Three : forall j k, score3 c (query M b (x i)) (code M (x j)) (code M (x k)) = c * turn M (x i + x j + x k)).
  { intros j k. unfold score3. f_equal. unfold turn. rewrite !plus_INR.
    replace (2 * PI * (INR (x i) + INR (x j) + INR (x k)) / INR M) with (angle M (x i) + angle M (x j) + angle M (x k))
      by (unfold angle; field; lra).
    rewrite <- three_angles. cbn [Sum]. unfold query, code. ring. }
  rewrite (Sum_ext N (fun j => Sum N (fun k => exp (score3 c (query M b (x i)) (code M (x j)) (code M (x k)))))
    (fun j => Sum N (fun k => exp (c * turn M (x i + x j + x k))))).
  2:{ intros j _. apply Sum_ext. intros k _. now rewrite Three. }
  rewrite (Sum_ext N (fun j => exp (score3 c (query M b (x i)) (code M (x j)) blank)
    + exp (score3 c (query M b (x i)) blank (code M (x j)))) (fun _ => 2)).
  2:{ intros j _.
      assert (Z : score3 c (query M b (x i)) (code M (x j)) blank = 0) by (unfold score3, blank, code; cbn [Sum]; ring).
      assert (Z' : score3 c (query M b (x i)) blank (code M (x j)) = 0) by (unfold score3, blank, code; cbn [Sum]; ring).
      rewrite Z, Z', exp_0. ring. }
  assert (Blanks : score3 c (query M b (x i)) blank blank = c * b) by (unfold score3, blank, query; cbn [Sum]; ring).
  rewrite Blanks, Sum_const. f_equal. f_equal. ring.
Qed.

Definition matched3 (N M : nat) (x : nat -> nat) (i : nat) : Prop :=
  exists j k, (j < N)%nat /\ (k < N)%nat /\ ((x i + x j + x k) mod M = 0)%nat.

Lemma match3_bounds : forall N M x i o, (0 < N)%nat -> (2 <= M)%nat -> 1 < o ->
  let g := Rmin 1 (1 - cos (2 * PI / INR M)) in
  let c := (ln (INR N ^ 2 + 2 * INR N) + 2 * ln o) / g in
  let w := exp c * (1 - 2 / ((INR N + 2) * o)) / o in
  let eta := 1 / (1 + o) in
  0 < w /\
  (matched3 N M x i -> 1 - eta <= match3 N M c w x i <= 1) /\
  (~ matched3 N M x i -> 0 <= match3 N M c w x i <= eta).
Proof.
  intros N M x i o PN HM Po g c w eta.
  assert (G : 0 < g <= 1).
  { pose proof (turn_gap M HM). unfold g. split; [apply Rmin_glb_lt; lra|apply Rmin_l]. }
  assert (Gc : cos (2 * PI / INR M) <= 1 - g) by (pose proof (Rmin_r 1 (1 - cos (2 * PI / INR M))); unfold g; lra).
  assert (QN : 1 <= INR N) by (apply (le_INR 1); lia).
  set (n := INR N) in *. set (p := n ^ 2 + 2 * n).
  assert (Pp : 3 <= p) by (unfold p; nra).
  assert (LP : 0 <= ln p) by (rewrite <- ln_1; apply ln_le; lra).
  assert (LO : 0 < ln o) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (Pc : 0 < c) by (apply Rdiv_lt_0_compat; unfold p in *; lra).
  assert (Cg : c * g = ln p + 2 * ln o) by (unfold c; fold p; field; lra).
  assert (Ep : exp (ln p + (ln o + ln o)) = p * o ^ 2) by (rewrite !exp_plus, !exp_ln by lra; ring).
  assert (Big : p * o ^ 2 <= exp c).
  { rewrite <- Ep. apply exp_le. nra. }
  assert (Near : exp (c * (1 - g)) = exp c / (p * o ^ 2)).
  { replace (c * (1 - g)) with (c + - (ln p + (ln o + ln o))) by lra. rewrite exp_plus, exp_Ropp, Ep. reflexivity. }
  pose proof (exp_pos c) as Pe. unfold w. set (e := exp c) in *.
  assert (Po2 : o < o ^ 2) by nra.
  assert (Ew : e * (1 - 2 / ((n + 2) * o)) / o = e / o - 2 * (e / ((n + 2) * o ^ 2))) by (field; lra).
  assert (Mixed : 2 * n <= 2 * (e / ((n + 2) * o ^ 2))).
  { apply Rmult_le_compat_l; [lra|]. apply (Rmult_le_reg_r ((n + 2) * o ^ 2)); [apply Rmult_lt_0_compat; lra|].
    replace (e / ((n + 2) * o ^ 2) * ((n + 2) * o ^ 2)) with e by (field; lra).
    apply Rle_trans with (2 := Big). unfold p. right. ring. }
  assert (Pw : 0 < e * (1 - 2 / ((n + 2) * o)) / o).
  { apply Rdiv_lt_0_compat; [|lra]. apply Rmult_lt_0_compat; [exact Pe|].
    assert (2 / ((n + 2) * o) < 1); [|lra]. apply (Rmult_lt_reg_r ((n + 2) * o)); [nra|].
    replace (2 / ((n + 2) * o) * ((n + 2) * o)) with 2 by (field; lra). nra. }
  split; [exact Pw|]. unfold match3. cbv zeta. fold n. set (v := e * (1 - 2 / ((n + 2) * o)) / o) in *.
  set (ones := Sum N (fun j => Sum N (fun k => exp (c * turn M (x i + x j + x k))))).
  assert (P1 : 0 < ones) by (apply Sum_all_pos; [exact PN|intros; apply Sum_all_pos; [exact PN|intros; apply exp_pos]]).
  assert (Pb : 0 < e / o) by (apply Rdiv_lt_0_compat; lra).
  split.
  - intros [j [k [Lj [Lk Mk]]]]. split.
    + assert (e <= ones).
      { apply Rle_trans with (Sum N (fun k => exp (c * turn M (x i + x j + x k)))).
        - pose proof (Sum_ge_term N (fun k => exp (c * turn M (x i + x j + x k))) k (fun k _ => Rlt_le _ _ (exp_pos _)) Lk) as S.
          cbv beta in S. rewrite turn_match, Rmult_1_r in S by (assumption || lia). exact S.
        - apply (Sum_ge_term N (fun j => Sum N (fun k => exp (c * turn M (x i + x j + x k))))); [|exact Lj].
          intros. apply Sum_nonneg. intros. apply Rlt_le, exp_pos. }
      pose proof (share_mono e ones (e / o) ltac:(lra) Pb) as S.
      rewrite (share_of_a_match e o Pe Po) in S. apply Rle_trans with (1 := S).
      apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra.
    + apply share_at_most_one; lra.
  - intro No. split; [apply Rlt_le, Rdiv_lt_0_compat; lra|].
    assert (Few : o * ones <= v).
    { apply Rle_trans with (o * Sum N (fun _ => Sum N (fun _ => e / (p * o ^ 2)))).
      - apply Rmult_le_compat_l; [lra|]. apply Sum_le. intros j Lj. apply Sum_le. intros k Lk. rewrite <- Near.
        apply exp_le. apply Rmult_le_compat_l; [lra|]. apply Rle_trans with (2 := Gc).
        apply turn_other; [exact HM|]. intro E. apply No. now exists j, k.
      - rewrite !Sum_const. fold n. rewrite Ew. apply (Rmult_le_reg_r ((n + 2) * o ^ 2)); [apply Rmult_lt_0_compat; lra|].
        replace (o * (n * (n * (e / (p * o ^ 2)))) * ((n + 2) * o ^ 2)) with (n * o * e * (n * (n + 2) / p)) by (field; lra).
        replace (n * (n + 2) / p) with 1 by (replace (n * (n + 2)) with p by (unfold p; ring); field; lra).
        replace ((e / o - 2 * (e / ((n + 2) * o ^ 2))) * ((n + 2) * o ^ 2)) with (((n + 2) * o - 2) * e) by (field; lra).
        rewrite Rmult_1_r. apply Rmult_le_compat_r; [lra|]. lra. }
    apply (Rmult_le_reg_r ((ones + (2 * n + v)) * (1 + o))); [apply Rmult_lt_0_compat; lra|].
    replace (ones / (ones + (2 * n + v)) * ((ones + (2 * n + v)) * (1 + o))) with (ones + o * ones) by (field; lra).
    unfold eta. replace (1 / (1 + o) * ((ones + (2 * n + v)) * (1 + o))) with (ones + (2 * n + v)) by (field; lra). lra.
Qed.

(** @statement Sparse averaging: Match3, tensor unit
    @clause in exact arithmetic
    @kind clause
    @hypotheses any N >= 1 tokens, M >= 2, o > 1; c = (ln(N^2 + 2N) + 2 ln o)/min(1, 1 - cos(2 pi/M)); a third-order unit of
      m = 4 coordinates, three cosines and one for the blank; pairs of tokens have the value 1, pairs with the blank 0
    @formula with some b, with a match the output is within eta = 1/(1 + o) of one, without one within eta of zero
    @note b is such that the blank pair weighs (1 - 2/((N + 2) o))/o of a match. Tokens are natural numbers. *)
Theorem match3_errors :
  forall N M o, (0 < N)%nat -> (2 <= M)%nat -> 1 < o ->
  let c := (ln (INR N ^ 2 + 2 * INR N) + 2 * ln o) / Rmin 1 (1 - cos (2 * PI / INR M)) in
  let eta := 1 / (1 + o) in
  exists b, exp (c * b) = exp c * (1 - 2 / ((INR N + 2) * o)) / o /\
  forall x i,
  (matched3 N M x i -> 1 - eta <= unit3 N M c b x i <= 1) /\
  (~ matched3 N M x i -> 0 <= unit3 N M c b x i <= eta).
Proof.
  intros N M o PN HM Po c eta.
  pose proof (fun x i => match3_bounds N M x i o PN HM Po) as Bounds. cbv zeta in Bounds. fold c eta in Bounds.
  set (w := exp c * (1 - 2 / ((INR N + 2) * o)) / o) in *.
  destruct (Bounds (fun _ => 0%nat) 0%nat) as [Pw _].
  assert (G : 0 < Rmin 1 (1 - cos (2 * PI / INR M))) by (apply Rmin_glb_lt; [lra|now apply turn_gap]).
  assert (Pc : 0 < c).
  { assert (QN : 1 <= INR N) by (apply (le_INR 1); lia).
    assert (0 <= ln (INR N ^ 2 + 2 * INR N)) by (rewrite <- ln_1; apply ln_le; nra).
    assert (0 < ln o) by (rewrite <- ln_1; apply ln_increasing; lra). apply Rdiv_lt_0_compat; lra. }
  exists (ln w / c). replace (c * (ln w / c)) with (ln w) by (field; lra). rewrite exp_ln by exact Pw.
  split; [reflexivity|]. intros x i.
  assert (E : unit3 N M c (ln w / c) x i = match3 N M c w x i).
  { rewrite unit3_is_match3 by lia. replace (c * (ln w / c)) with (ln w) by (field; lra). now rewrite exp_ln. }
  rewrite E. apply Bounds.
Qed.

(** Without the blank token every output is one, whatever the tokens: X = (1, 2, 3, 4), M = 11 has no match. *)
(** @statement Sparse averaging: Match2
    @kind erratum
    @hypotheses X = (1, 2, 3, 4), M = 11, any scale, no blank token
    @formula no token has a match, and every output is one
    @note Values are 1 for every token, so that an output is the sum of the weights over itself. *)
Theorem without_a_blank_match2_fails :
  forall c, let x i := S i in
  let ones i := Sum 4 (fun j => exp (c * turn 11 (x i + x j))) in
  (forall i, (i < 4)%nat -> ~ matched2 4 11 x i) /\ forall i, ones i / ones i = 1.
Proof.
  intros c x ones. split.
  - intros i Li [j [Lj E]]. unfold x in E.
    assert (i = 0 \/ i = 1 \/ i = 2 \/ i = 3)%nat as [->|[->|[->| ->]]] by lia;
    assert (j = 0 \/ j = 1 \/ j = 2 \/ j = 3)%nat as [->|[->|[->| ->]]] by lia; discriminate.
  - intro i. assert (0 < ones i) by (apply Sum_all_pos; [lia|intros; apply exp_pos]). field. lra.
Qed.
