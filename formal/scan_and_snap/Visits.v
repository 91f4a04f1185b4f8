(** Lemma 11 (62) as printed is false: a counter-example. Lemma 10's second inequality, and Lemma 8 for few tokens, too. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Calculus Exp.
From Formal.scan_and_snap Require Import Growth.
Open Scope R_scope.

(** Lemma 11: G(s) = 1/(M - 1 + exp(M h(s))). *)
Definition G (M : R) (h : R -> R) (s : R) : R := / (M - 1 + exp (M * h s)).

(** @statement Scan and Snap: Lemma 11
    @clause (62), residual
    @kind erratum
    @hypotheses M = 1000, eta_Y = 1/2; h solves (44); Nbar = 25, Delta = 18, N_n = Nbar - Delta = 7
    @formula |G(N_n) - G(Nbar)| > G(Nbar) eta_Y Delta/3, with G(s) = 1/(M - 1 + exp(M h(s)))
    @note One setting, that of the erratum: K = 4, N = 100, delta = 0.05. *)
Theorem lemma11_as_printed_is_false :
  forall h, solves 1000 (1 / 2) h ->
  let Delta := 18 in
  G 1000 h 25 * (1 / 2 * Delta / 3) < Rabs (G 1000 h (25 - Delta) - G 1000 h 25).
Proof.
  intros h Hs Delta. unfold Delta. replace (25 - 18) with 7 by ring.
  assert (X7 : 1000 * h 7 < 3.49).
  { assert (h 7 < 3.49 / 1000); [|lra]. apply (psi_lt 1000); [lra|].
    rewrite (solves_psi 1000 (1 / 2) h) by (assumption || lra). unfold psi.
    replace (1000 * (3.49 / 1000)) with 3.49 by field.
    assert (30 <= exp 3.49) by (apply Rle_trans with (series 3.49 9); [by_series|apply exp_lower; lra]). lra. }
  assert (X25 : 8.3 < 1000 * h 25).
  { assert (8.3 / 1000 < h 25); [|lra]. apply (psi_lt 1000); [lra|].
    rewrite (solves_psi 1000 (1 / 2) h) by (assumption || lra). unfold psi.
    replace (1000 * (8.3 / 1000)) with 8.3 by field.
    assert (exp 8.3 <= 4100) by (apply (exp_upper 8.3 32); by_series). lra. }
  assert (E7 : exp (1000 * h 7) <= 33).
  { apply Rle_trans with (exp 3.49); [apply exp_le; lra|]. apply (exp_upper 3.49 16); by_series. }
  assert (E25 : 4000 <= exp (1000 * h 25)).
  { apply Rle_trans with (exp 8.3); [|apply exp_le; lra].
    apply Rle_trans with (series 8.3 28); [by_series|apply exp_lower; lra]. }
  unfold G. pose proof (exp_pos (1000 * h 7)) as P7.
  set (a := 1000 - 1 + exp (1000 * h 7)) in *. set (b := 1000 - 1 + exp (1000 * h 25)) in *.
  assert (B : 999 < a <= 1032 /\ 4999 <= b) by (unfold a, b; lra).
  apply Rlt_le_trans with (/ a - / b); [|apply Rle_abs].
  apply (Rmult_lt_reg_r (a * b)); [nra|].
  replace (/ b * (1 / 2 * 18 / 3) * (a * b)) with (3 * a) by (field; lra).
  replace ((/ a - / b) * (a * b)) with (b - a) by (field; lra). lra.
Qed.

(** What holds: (62) without the third, between any two numbers of visits. *)
(** @statement Scan and Snap: Lemma 11
    @clause (62), residual
    @kind part
    @hypotheses M > 1, eta_Y > 0; h solves (44); any times s, t >= 0
    @formula |G(s) - G(t)| <= G(t) eta_Y |s - t|
    @note The bound of the logarithm is not part of it. *)
Theorem lemma11_corrected :
  forall M eta h s t, 1 < M -> 0 < eta -> solves M eta h -> 0 <= s -> 0 <= t ->
  Rabs (G M h s - G M h t) <= G M h t * (eta * Rabs (s - t)).
Proof.
  intros M eta h s t HM He Hs Ps Pt. unfold G.
  pose proof (exp_pos (M * h s)) as P1. pose proof (exp_pos (M * h t)) as P2.
  set (a := M - 1 + exp (M * h s)) in *. set (b := M - 1 + exp (M * h t)) in *.
  assert (Pa : 0 < a) by (unfold a; lra). assert (Pb : 0 < b) by (unfold b; lra).
  assert (Hn : 0 <= h s) by (now apply (solves_nonneg M eta)).
  assert (Am : M <= a).
  { unfold a. assert (1 <= exp (M * h s)); [|lra]. rewrite <- exp_0. apply exp_le. apply Rmult_le_pos; lra. }
  (* exp grows by at most M eta a unit of time, as the sum of both terms of (45) does and the other grows, too *)
  assert (Q : Rabs (b - a) <= M * (eta * Rabs (s - t))).
  { pose proof (lemma6_closed_form M eta h HM He Hs s Ps) as Es.
    pose proof (lemma6_closed_form M eta h HM He Hs t Pt) as Et. unfold a, b.
    destruct (Rtotal_order s t) as [L|[->|L]].
    - pose proof (solves_increasing M eta h s t HM He Hs (conj Ps L)) as I.
      assert (exp (M * h s) <= exp (M * h t)) by (apply exp_le, Rmult_le_compat_l; lra).
      assert (0 <= (M - 1) * (M * h t) - (M - 1) * (M * h s)) by (assert (0 < (M - 1) * M * (h t - h s)); [apply Rmult_lt_0_compat; [nra|lra]|lra]).
      rewrite Rabs_pos_eq, (Rabs_left (s - t)) by lra. lra.
    - unfold Rminus. rewrite !Rplus_opp_r, Rabs_R0. lra.
    - pose proof (solves_increasing M eta h t s HM He Hs (conj Pt L)) as I.
      assert (exp (M * h t) <= exp (M * h s)) by (apply exp_le, Rmult_le_compat_l; lra).
      assert (0 <= (M - 1) * (M * h s) - (M - 1) * (M * h t)) by (assert (0 < (M - 1) * M * (h s - h t)); [apply Rmult_lt_0_compat; [nra|lra]|lra]).
      rewrite Rabs_left1, (Rabs_pos_eq (s - t)) by lra. lra. }
  replace (/ a - / b) with ((b - a) * / (a * b)) by (field; lra).
  assert (0 < / (a * b)) by (apply Rinv_0_lt_compat, Rmult_lt_0_compat; assumption).
  rewrite Rabs_mult, (Rabs_pos_eq (/ (a * b))) by lra.
  apply (Rmult_le_reg_r (a * b)); [now apply Rmult_lt_0_compat|].
  replace (Rabs (b - a) * / (a * b) * (a * b)) with (Rabs (b - a)) by (field; lra).
  replace (/ b * (eta * Rabs (s - t)) * (a * b)) with (a * (eta * Rabs (s - t))) by (field; lra).
  apply Rle_trans with (1 := Q). apply Rmult_le_compat_r; [|exact Am].
  apply Rmult_le_pos; [lra|apply Rabs_pos].
Qed.

(** Lemma 10 (58): the second "<" fails wherever x = N ln(2/delta) is at most 11.6; x = 11.7 obeys it. *)
(** @statement Scan and Snap: Lemma 10
    @kind erratum
    @hypotheses x = N ln(2/delta) >= 0
    @formula for x <= 11.6 the second < of (58) fails strictly, sqrt(x) < sqrt(x/2) + 1; for x >= 11.7 it holds
    @note The exact limit is 6 + 4 sqrt(2) = 11.657. The probability is not part of it. *)
Theorem lemma10_as_printed_is_false :
  (forall x, 0 <= x <= 11.6 -> sqrt x < sqrt (x / 2) + 1) /\ (forall x, 11.7 <= x -> sqrt (x / 2) + 1 < sqrt x).
Proof.
  assert (Sq : forall y, 0 <= y -> sqrt y * sqrt y = y) by (intros; now apply sqrt_sqrt).
  split; intros x Hx.
  - pose proof (Sq x ltac:(lra)) as A. pose proof (Sq (x / 2) ltac:(lra)) as B.
    pose proof (sqrt_pos x). pose proof (sqrt_pos (x / 2)).
    set (a := sqrt x) in *. set (b := sqrt (x / 2)) in *.
    destruct (Rlt_le_dec a (b + 1)) as [|L]; [easy|exfalso].
    (* a^2 = 2 b^2 >= (b + 1)^2, so that b >= 1 + sqrt 2 *)
    assert (2.409 < b) by nra. nra.
  - pose proof (Sq x ltac:(lra)) as A. pose proof (Sq (x / 2) ltac:(lra)) as B.
    pose proof (sqrt_pos x). pose proof (sqrt_pos (x / 2)).
    set (a := sqrt x) in *. set (b := sqrt (x / 2)) in *.
    assert (2.418 < b) by nra.
    destruct (Rlt_le_dec (b + 1) a) as [|L]; [easy|exfalso]. nra.
Qed.

(** Lemma 8 for M = 2 and 3: exp(x) and (M - 1) x never cross. *)
(** @statement Scan and Snap: Lemma 8
    @clause two crossings
    @kind erratum
    @hypotheses any real x = M h; M = 2 and M = 3
    @formula (M - 1) x < exp(x): the two never cross *)
Theorem lemma8_needs_four_tokens :
  forall x, 1 * x < exp x /\ 2 * x < exp x.
Proof.
  intro x. pose proof (exp_above_line x). split; [lra|].
  destruct (Rle_lt_dec x 0) as [N|P]; [pose proof (exp_pos x); lra|].
  assert (1 + x / 2 <= exp (x / 2)) by apply exp_above_line.
  replace (exp x) with (exp (x / 2) * exp (x / 2)) by (rewrite <- exp_plus; f_equal; field).
  pose proof (exp_square x ltac:(lra)). 
  replace (exp (x / 2) * exp (x / 2)) with (exp x) by (rewrite <- exp_plus; f_equal; field). nra.
Qed.
