(** The slides' conjecture as a statement on sizes, and numbers that attention copies and rounds. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums Calculus.
Open Scope R_scope.

(** Two layers for N = G^3 tokens have the size m H D = 6 N^(2/3) = 6 G^2. *)
(** @statement Sparse averaging: Conjecture
    @clause slides' form, every M: refuted
    @kind part
    @hypotheses any c > 0; N = G^3 tokens
    @formula 6 N^(2/3) < c N/ln(N) for all large G: no constant makes m H D = 6 N^(2/3) a size of order N/log N
    @note Arithmetic of sizes only. That two layers of this size find all triples is a construction that is not
      formalised. *)
Theorem size_of_two_layers_is_below_the_conjectured_one :
  forall c, 0 < c -> exists G0, forall G, G0 < G -> 6 * G ^ 2 < c * (G ^ 3 / ln (G ^ 3)).
Proof.
  intros c Pc. exists (1 + (36 / c) ^ 2). intros G HG.
  assert (P2 : 0 <= (36 / c) ^ 2) by apply pow2_ge_0.
  assert (PG : 1 < G) by lra.
  set (r := sqrt G). assert (Sr : r * r = G) by (apply sqrt_sqrt; lra).
  assert (Pr : 0 < r) by (apply sqrt_lt_R0; lra).
  assert (R1 : 1 < r) by nra.
  assert (Pk : 0 < 36 / c) by (apply Rdiv_lt_0_compat; lra).
  assert (R36 : 36 / c < r) by nra.
  assert (LG : ln (G ^ 3) = 6 * ln r).
  { rewrite <- Sr. replace ((r * r) ^ 3) with (r ^ 6) by ring. rewrite ln_pow by exact Pr. simpl. ring. }
  assert (L0 : 0 < ln r) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (L1 : ln r < r).
  { rewrite <- (ln_exp r) at 2. apply ln_increasing; [exact Pr|]. pose proof (exp_above_line r). lra. }
  rewrite LG. apply (Rmult_lt_reg_r (6 * ln r)); [lra|].
  replace (c * (G ^ 3 / (6 * ln r)) * (6 * ln r)) with (G ^ 2 * (c * G)) by (field; lra).
  replace (6 * G ^ 2 * (6 * ln r)) with (G ^ 2 * (36 * ln r)) by ring.
  apply Rmult_lt_compat_l; [apply pow_lt; lra|].
  assert (36 < c * r).
  { apply (Rmult_lt_compat_l c) in R36; [|exact Pc]. replace (c * (36 / c)) with 36 in R36 by (field; lra). exact R36. }
  rewrite <- Sr. nra.
Qed.

(** A number v below P is copied by attention: the right token weighs 1, N others w_j with numbers v_j below P; numerator
    and denominator have relative errors e and e', and the result is rounded to a multiple of 1/2. *)
(** @statement Sparse averaging: Match3, transform
    @clause right for every N and M
    @kind part
    @hypotheses P >= 1; a number v from 0 to P - 1; N wrong tokens of weights w_j >= 0 relative to the right
      one's, 1/(8P) together, with numbers from 0 to P - 1; relative errors of at most 1/(32P) in numerator and
      denominator; rounding moves by at most 1/4
    @formula what is copied is less than 1/2 from v, so that the nearest integer is v
    @note The histogram, the butterflies and the reads are not part of it. *)
Theorem copies_are_exact_after_rounding :
  forall N P v w vj e e' out, 1 <= P -> 0 <= v <= P - 1 ->
  (forall j, (j < N)%nat -> 0 <= w j /\ 0 <= vj j <= P - 1) ->
  Sum N w <= 1 / (8 * P) -> Rabs e <= 1 / (32 * P) -> Rabs e' <= 1 / (32 * P) ->
  Rabs (out - (v + Sum N (fun j => w j * vj j)) * (1 + e) / ((1 + Sum N w) * (1 + e'))) <= 1 / 4 ->
  Rabs (out - v) < 1 / 2.
Proof.
  intros N P v w vj e e' out PP Pv Hw Leak He He' Ho.
  set (L := Sum N w) in *. set (s := Sum N (fun j => w j * vj j)) in *.
  assert (PL : 0 <= L) by (apply Sum_nonneg; intros j Lj; apply Hw, Lj).
  assert (Ps : 0 <= s <= L * (P - 1)).
  { split; [apply Sum_nonneg; intros j Lj; destruct (Hw j Lj); apply Rmult_le_pos; lra|].
    unfold L, s. rewrite <- Sum_scal_r. apply Sum_le. intros j Lj. destruct (Hw j Lj). apply Rmult_le_compat_l; lra. }
  set (d := 1 / (32 * P)) in *. assert (Ed : 32 * (P * d) = 1) by (unfold d; field; lra).
  assert (Pd : 0 < d) by (unfold d; apply Rdiv_lt_0_compat; lra).
  assert (Dd : d <= 1 / 32).
  { assert (0 <= (P - 1) * d) by (apply Rmult_le_pos; lra). lra. }
  assert (EL : L <= 4 * d) by (replace (4 * d) with (1 / (8 * P)) by (unfold d; field; lra); exact Leak).
  apply Rabs_le_between in He. apply Rabs_le_between in He'. apply Rabs_le_between in Ho.
  set (a := (v + s) * (1 + e) / ((1 + L) * (1 + e'))) in *.
  assert (Den : 0 < (1 + L) * (1 + e')) by (apply Rmult_lt_0_compat; lra).
  assert (Ea : a * ((1 + L) * (1 + e')) = (v + s) * (1 + e)) by (unfold a; field; lra).
  (* |a - v| < 1/4 *)
  assert (Pd1 : (P - 1) * d <= 1 / 32 - d) by lra.
  assert (Vd : v * d <= (P - 1) * d) by (apply Rmult_le_compat_r; lra).
  assert (VL : v * L <= (P - 1) * (4 * d)) by (apply Rmult_le_compat; lra).
  assert (SL : s <= (P - 1) * (4 * d)).
  { apply Rle_trans with (1 := proj2 Ps). rewrite Rmult_comm. apply Rmult_le_compat_l; lra. }
  assert (Ve : Rabs (v * e) <= 1 / 32 - d).
  { rewrite Rabs_mult, (Rabs_pos_eq v) by lra. apply Rle_trans with (v * d); [|lra].
    apply Rmult_le_compat_l; [lra|]. apply Rabs_le. lra. }
  assert (Ve' : Rabs (v * e') <= 1 / 32 - d).
  { rewrite Rabs_mult, (Rabs_pos_eq v) by lra. apply Rle_trans with (v * d); [|lra].
    apply Rmult_le_compat_l; [lra|]. apply Rabs_le. lra. }
  apply Rabs_le_between in Ve. apply Rabs_le_between in Ve'.
  assert (Big : 31 / 32 <= (1 + L) * (1 + e')).
  { apply Rle_trans with (1 * (31 / 32)); [lra|]. apply Rmult_le_compat; lra. }
  assert (Small : forall y g, 0 <= y -> - d <= g <= d -> - (y / 32) <= y * g <= y / 32).
  { intros y g Py Hg. split.
    - apply Rle_trans with (y * - d); [|apply Rmult_le_compat_l; lra].
      assert (y * d <= y * (1 / 32)) by (apply Rmult_le_compat_l; lra). lra.
    - apply Rle_trans with (y * d); [apply Rmult_le_compat_l; lra|].
      assert (y * d <= y * (1 / 32)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Diff : (a - v) * ((1 + L) * (1 + e')) = s + v * e + s * e - v * L - v * e' - v * L * e').
  { rewrite Rmult_minus_distr_r, Ea. ring. }
  pose proof (Small s e (proj1 Ps) He) as Se.
  assert (Pvl : 0 <= v * L) by (apply Rmult_le_pos; lra).
  pose proof (Small (v * L) e' Pvl He') as Vle.
  set (D := (1 + L) * (1 + e')) in *.
  assert (- (1 / 4) < a - v < 1 / 4).
  { split.
    - destruct (Rlt_le_dec (- (1 / 4)) (a - v)) as [|B]; [assumption|exfalso].
      assert ((a - v) * D <= - (1 / 4) * D) by (apply Rmult_le_compat_r; lra). lra.
    - destruct (Rlt_le_dec (a - v) (1 / 4)) as [|B]; [assumption|exfalso].
      assert (1 / 4 * D <= (a - v) * D) by (apply Rmult_le_compat_r; lra). lra. }
  apply Rabs_def1; lra.
Qed.
