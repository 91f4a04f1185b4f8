(** Lemma 11 (62) as printed is false: a counter-example. Lemma 10's second inequality, and Lemma 8 for few tokens, too. *)

Require Import Reals Lra Lia Psatz ZArith.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Calculus Exp.
From Formal.scan_and_snap Require Import Growth.
Open Scope R_scope.

(** Lemma 11: G(s) = 1/(M - 1 + exp(M h(s))). *)
Definition G (M : R) (h : R -> R) (s : R) : R := / (M - 1 + exp (M * h s)).

(** exp at a whole number is a power of e. *)
Lemma exp_whole n x : x = IZR (Z.of_nat n) -> exp x = exp 1 ^ n.
Proof.
  intros ->. rewrite <- INR_IZR_INZ. induction n; [apply exp_0|]. rewrite S_INR, exp_plus, IHn. simpl. ring.
Qed.

(** @statement Scan and Snap: Lemma 11
    @clause (62), residual
    @kind erratum
    @hypotheses M = 10^100, eta_Y = 1/10; h solves (44); Nbar = 2399, Delta = 119, N_n = Nbar - Delta = 2280
    @formula |G(N_n) - G(Nbar)| > G(Nbar) eta_Y Delta/3, with G(s) = 1/(M - 1 + exp(M h(s)))
    @note One setting, that of K = 2, N = 4798, delta = 0.05, where sqrt(N ln(1/delta)) is 119.9. All that the lemma
      calls much smaller is: K^2 = 4 beside N, Delta beside Nbar, eta_Y Delta/3 = 4.0 beside ln M = 230. The sign before
      sigma' in (62) is read as "at most", with the constant 1. *)
Theorem lemma11_as_printed_is_false :
  forall h, solves (10 ^ 100) (1 / 10) h ->
  let Delta := 119 in
  G (10 ^ 100) h 2399 * (1 / 10 * Delta / 3) < Rabs (G (10 ^ 100) h (2399 - Delta) - G (10 ^ 100) h 2399).
Proof.
  intros h Hs Delta. unfold Delta. replace (2399 - 119) with 2280 by ring.
  assert (Ratio : forall a b m, 0 < b -> (a / b) ^ m * b ^ m = a ^ m).
  { intros a b m Pb. rewrite <- Rpow_mult_distr. f_equal. field. lra. }
  (* 2.7^234 > 10^100 * 6 and 2.72^228 < 10^100/5, among whole numbers *)
  assert (Low : 6 * 10 ^ 100 <= exp 234).
  { rewrite (exp_whole 234 234 eq_refl). apply Rle_trans with (2.7 ^ 234).
    - apply (Rmult_le_reg_r (10 ^ 234)); [apply pow_lt; lra|]. replace 2.7 with (27 / 10) by lra. rewrite Ratio by lra.
      rewrite !pow_IZR, <- !mult_IZR. apply IZR_le. now vm_compute.
    - apply pow_incr. split; [lra|]. apply Rle_trans with (series 1 6); [by_series|apply exp_lower; lra]. }
  assert (High : 5 * exp 228 <= 10 ^ 100).
  { rewrite (exp_whole 228 228 eq_refl). apply Rle_trans with (5 * 2.72 ^ 228).
    - apply Rmult_le_compat_l; [lra|]. apply pow_incr. split; [apply Rlt_le, exp_pos|]. apply (exp_upper 1 8); by_series.
    - apply (Rmult_le_reg_r (100 ^ 228)); [apply pow_lt; lra|]. replace 2.72 with (272 / 100) by lra.
      rewrite Rmult_assoc, Ratio by lra. rewrite !pow_IZR, <- !mult_IZR. apply IZR_le. now vm_compute. }
  assert (Large : 10 ^ 4 <= 10 ^ 100) by (apply Rle_pow; [lra|lia]).
  set (M := 10 ^ 100) in *. assert (HM : 10000 <= M) by lra. clearbody M.
  pose proof (lemma6_closed_form M (1 / 10) h ltac:(lra) ltac:(lra) Hs 2280 ltac:(lra)) as E.
  pose proof (lemma6_closed_form M (1 / 10) h ltac:(lra) ltac:(lra) Hs 2399 ltac:(lra)) as E'.
  set (x := M * h 2280) in *. set (y := M * h 2399) in *.
  (* (45) at 227.8 and at 234 *)
  assert (X : 227.8 <= x).
  { destruct (Rle_lt_dec 227.8 x) as [|L]; [easy|exfalso].
    assert (exp x <= exp 228) by (apply exp_le; lra).
    assert ((M - 1) * x <= (M - 1) * 227.8) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Y : y <= 234).
  { destruct (Rle_lt_dec y 234) as [|L]; [easy|exfalso].
    assert (exp 234 <= exp y) by (apply exp_le; lra).
    assert ((M - 1) * 234 <= (M - 1) * y) by (apply Rmult_le_compat_l; lra). lra. }
  assert ((M - 1) * 227.8 <= (M - 1) * x) by (apply Rmult_le_compat_l; lra).
  assert ((M - 1) * y <= (M - 1) * 234) by (apply Rmult_le_compat_l; lra).
  unfold G. fold x y. pose proof (exp_pos x) as Px.
  set (a := M - 1 + exp x) in *. set (b := M - 1 + exp y) in *.
  assert (B : 0 < a /\ 5 * a < b) by (unfold a, b; lra).
  apply Rlt_le_trans with (/ a - / b); [|apply Rle_abs].
  apply (Rmult_lt_reg_r (a * b)); [nra|].
  replace (/ b * (1 / 10 * 119 / 3) * (a * b)) with (119 / 30 * a) by (field; lra).
  replace ((/ a - / b) * (a * b)) with (b - a) by (field; lra). lra.
Qed.

(** What holds: (62) without the third, between any two numbers of visits. *)
Lemma residual_gap M eta h s t : 1 < M -> 0 < eta -> solves M eta h -> 0 <= s -> 0 <= t ->
  Rabs (G M h s - G M h t) <= G M h t * (eta * Rabs (s - t)).
Proof.
  intros HM He Hs Ps Pt. unfold G.
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

(** ln G moves at -M eta exp(M h)/(M - 1 + exp(M h))^2. *)
Lemma is_derive_ln_G M eta h s : 1 < M -> is_derive h s (rate M eta (h s)) ->
  is_derive (fun t => ln (G M h t)) s (- (M * eta * exp (M * h s) / (M - 1 + exp (M * h s)) ^ 2)).
Proof.
  intros HM D. pose proof (exp_pos (M * h s)) as P.
  assert (E : is_derive (fun x => ln (/ (M - 1 + exp (M * x)))) (h s) (- (M * exp (M * h s) / (M - 1 + exp (M * h s))))).
  { auto_derive.
    - repeat split; [lra|]. apply Rinv_0_lt_compat. lra.
    - field. lra. }
  pose proof (is_derive_comp (fun x => ln (/ (M - 1 + exp (M * x)))) h s _ _ E D) as C.
  replace (- (M * eta * exp (M * h s) / (M - 1 + exp (M * h s)) ^ 2))
    with (scal (rate M eta (h s)) (- (M * exp (M * h s) / (M - 1 + exp (M * h s))))); [exact C|].
  unfold scal; simpl; unfold mult; simpl. unfold rate. field. lra.
Qed.

Lemma log_gap M eta h s t : 1 < M -> 0 < eta -> solves M eta h -> 0 <= s <= t ->
  Rabs (ln (G M h s) - ln (G M h t)) <= M * eta * (t - s) / (4 * (M - 1)).
Proof.
  intros HM He Hs [Ps L]. destruct (lemma6_existence M eta HM He) as [g [Hg Dg]].
  unfold G. rewrite !(lemma6_uniqueness M eta h g HM He Hs Hg) by lra. fold (G M g s) (G M g t).
  destruct (Req_dec s t) as [->|N].
  - unfold Rminus. rewrite !Rplus_opp_r, Rabs_R0. unfold Rdiv. lra.
  - destruct (mean_value (fun t => ln (G M g t)) _ s t ltac:(lra) (fun x _ => is_derive_ln_G M eta g x HM (Dg x)))
      as [c [_ E]].
    rewrite Rabs_minus_sym, E. pose proof (exp_pos (M * g c)) as P. set (x := exp (M * g c)) in *.
    assert (Q : M * eta * x / (M - 1 + x) ^ 2 <= M * eta / (4 * (M - 1))).
    { apply (Rmult_le_reg_r ((M - 1 + x) ^ 2 * (4 * (M - 1)))); [apply Rmult_lt_0_compat; [apply pow_lt; lra|lra]|].
      replace (M * eta * x / (M - 1 + x) ^ 2 * ((M - 1 + x) ^ 2 * (4 * (M - 1)))) with (M * eta * (x * (4 * (M - 1))))
        by (field; lra).
      replace (M * eta / (4 * (M - 1)) * ((M - 1 + x) ^ 2 * (4 * (M - 1)))) with (M * eta * (M - 1 + x) ^ 2) by (field; lra).
      apply Rmult_le_compat_l; [nra|]. pose proof (pow2_ge_0 (M - 1 - x)). nra. }
    assert (0 <= M * eta * x / (M - 1 + x) ^ 2).
    { apply Rlt_le, Rdiv_lt_0_compat; [|apply pow_lt; lra]. apply Rmult_lt_0_compat; nra. }
    rewrite Rabs_mult, Rabs_Ropp, (Rabs_pos_eq (t - s)), Rabs_pos_eq by lra.
    replace (M * eta * (t - s) / (4 * (M - 1))) with (M * eta / (4 * (M - 1)) * (t - s)) by (field; lra).
    apply Rmult_le_compat_r; lra.
Qed.

(** @statement Scan and Snap: Lemma 11
    @clause (62), residual
    @kind clause
    @hypotheses M > 1, eta_Y > 0; h solves (44); any times s, t >= 0
    @formula |G(s) - G(t)| <= G(t) eta_Y |s - t| and |ln G(s) - ln G(t)| <= M eta_Y |s - t|/(4 (M - 1)), with G(s) =
      1/(M - 1 + exp(M h(s)))
    @note With s = N_n and t = Nbar; that |N_n - Nbar| <= Delta holds with probability 1 - delta is Lemma 10. *)
Theorem lemma11_corrected :
  forall M eta h s t, 1 < M -> 0 < eta -> solves M eta h -> 0 <= s -> 0 <= t ->
  Rabs (G M h s - G M h t) <= G M h t * (eta * Rabs (s - t)) /\
  Rabs (ln (G M h s) - ln (G M h t)) <= M * eta * Rabs (s - t) / (4 * (M - 1)).
Proof.
  intros M eta h s t HM He Hs Ps Pt. split; [now apply residual_gap|].
  destruct (Rle_lt_dec s t) as [L|L].
  - rewrite (Rabs_left1 (s - t)), Ropp_minus_distr by lra. now apply log_gap.
  - rewrite (Rabs_minus_sym (ln _)), (Rabs_pos_eq (s - t)) by lra. apply log_gap; try assumption. lra.
Qed.

(** h over time falls: a step of the flow is never longer than the mean of those before. *)
Lemma growth_shrinks M eta h s t : 1 < M -> 0 < eta -> solves M eta h -> 0 <= s <= t -> h t * s <= h s * t.
Proof.
  intros HM He Hs [Ps L].
  pose proof (solves_nonneg M eta h t HM He Hs ltac:(lra)) as Nt.
  destruct (Req_dec t 0) as [Z|N]; [replace s with 0 by lra; subst t; lra|].
  assert (Psi : psi M (h t * (s / t)) <= psi M (h s)).
  { rewrite (solves_psi M eta h s HM He Hs Ps). pose proof (solves_psi M eta h t HM He Hs ltac:(lra)) as E.
    (* psi is convex: at a share of h(t) it is at most that share of the way from psi(0) = 1 *)
    set (w := s / t). assert (Bw : 0 <= w <= 1).
    { unfold w. split; [apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]|].
      apply (Rmult_le_reg_r t); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    pose proof (psi_step M (h t * w) (h t) HM) as A. pose proof (psi_step M (h t * w) 0 HM) as B. rewrite psi_0 in B.
    set (D := M * (M - 1 + exp (M * (h t * w)))) in *.
    assert (w * (psi M (h t) - psi M (h t * w)) + (1 - w) * (1 - psi M (h t * w)) >= 0).
    { assert (w * (D * (h t - h t * w)) <= w * (psi M (h t) - psi M (h t * w))) by (apply Rmult_le_compat_l; lra).
      assert ((1 - w) * (D * (0 - h t * w)) <= (1 - w) * (1 - psi M (h t * w))) by (apply Rmult_le_compat_l; lra). nra. }
    assert (Ew : w * (M * eta * t) = M * eta * s) by (unfold w; field; lra). nra. }
  apply psi_le in Psi; [|exact HM].
  apply Rmult_le_compat_r with (r := t) in Psi; [|lra].
  replace (h t * (s / t) * t) with (h t * s) in Psi by (field; lra). exact Psi.
Qed.

(** @statement Scan and Snap: Lemma 11
    @clause (61), growth
    @kind clause
    @hypotheses M > 1, eta_Y > 0; h solves (44); Nbar > 0, N_n >= 0 and |N_n - Nbar| <= Delta
    @formula |h(N_n) - h(Nbar)| <= h(Nbar) Delta/Nbar
    @note That |N_n - Nbar| <= Delta holds with probability 1 - delta is Lemma 10. *)
Theorem lemma11_growth :
  forall M eta h Nn Nbar Delta, 1 < M -> 0 < eta -> solves M eta h -> 0 < Nbar -> 0 <= Nn -> Rabs (Nn - Nbar) <= Delta ->
  Rabs (h Nn - h Nbar) <= h Nbar * (Delta / Nbar).
Proof.
  intros M eta h Nn Nbar Delta HM He Hs Pb Pn Gap.
  pose proof (solves_nonneg M eta h Nbar HM He Hs ltac:(lra)) as Hb.
  assert (Inc : forall a b, 0 <= a <= b -> h a <= h b).
  { intros a b [Pa [L| ->]]; [|lra]. apply Rlt_le, (solves_increasing M eta h); try assumption. lra. }
  apply Rle_trans with (h Nbar * (Rabs (Nn - Nbar) / Nbar)).
  2:{ apply Rmult_le_compat_l; [exact Hb|]. apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, Pb|exact Gap]. }
  apply (Rmult_le_reg_r Nbar); [exact Pb|].
  replace (h Nbar * (Rabs (Nn - Nbar) / Nbar) * Nbar) with (h Nbar * Rabs (Nn - Nbar)) by (field; lra).
  destruct (Rle_lt_dec Nn Nbar) as [L|L].
  - pose proof (growth_shrinks M eta h Nn Nbar HM He Hs ltac:(lra)) as S. pose proof (Inc Nn Nbar ltac:(lra)).
    rewrite !Rabs_left1 by lra. lra.
  - pose proof (growth_shrinks M eta h Nbar Nn HM He Hs ltac:(lra)) as S. pose proof (Inc Nbar Nn ltac:(lra)).
    rewrite !Rabs_pos_eq by lra. lra.
Qed.

(** @statement Scan and Snap: Lemma 11
    @clause (62), from the upper crossing of Lemma 8 on
    @kind clause
    @hypotheses M > 1, eta_Y > 0; h solves (44); s > 0 with (M - 1) M h(s) <= exp(M h(s)), which holds from the upper
      crossing of Lemma 8 on
    @formula ln G has at s a derivative, and |s d(ln G)/ds| <= 2 *)
Theorem lemma11_late :
  forall M eta h s, 1 < M -> 0 < eta -> solves M eta h -> 0 < s -> (M - 1) * (M * h s) <= exp (M * h s) ->
  exists slope, is_derive (fun t => ln (G M h t)) s slope /\ Rabs (s * slope) <= 2.
Proof.
  intros M eta h s HM He Hs Ps Past.
  pose proof (solves_psi M eta h s HM He Hs ltac:(lra)) as E. unfold psi in E.
  eexists. split; [apply (is_derive_ln_G M eta h s HM); apply Hs; exact Ps|].
  pose proof (exp_pos (M * h s)) as P. set (x := exp (M * h s)) in *.
  assert (0 <= s * (M * eta * x / (M - 1 + x) ^ 2)).
  { apply Rmult_le_pos; [lra|]. apply Rlt_le, Rdiv_lt_0_compat; [|apply pow_lt; lra]. apply Rmult_lt_0_compat; nra. }
  rewrite <- Ropp_mult_distr_r, Rabs_Ropp, Rabs_pos_eq by lra.
  apply (Rmult_le_reg_r ((M - 1 + x) ^ 2)); [apply pow_lt; lra|].
  replace (s * (M * eta * x / (M - 1 + x) ^ 2) * (M - 1 + x) ^ 2) with ((M * eta * s) * x) by (field; lra). 
  assert (M * eta * s <= 2 * x) by lra.
  apply Rle_trans with (2 * x * x); [apply Rmult_le_compat_r; lra|]. nra.
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
