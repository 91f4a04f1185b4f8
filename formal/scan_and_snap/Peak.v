(** gamma, the speed of Theorem 1, and the one moment at which it is largest. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Calculus Exp.
From Formal.scan_and_snap Require Import Growth.
Open Scope R_scope.

(** (85), with the growth h as a function of time in SGD steps; K is the number of classes. *)
Definition gamma (M K : R) (h : R -> R) (t : R) : R :=
  (M - 1) ^ 2 * h (t / K) / (M - 1 + exp (M * h (t / K))).

(** gamma as a function of the margin x = M h. *)
Definition speed (M x : R) : R := (M - 1) ^ 2 / M * (x / (M - 1 + exp x)).

Lemma gamma_speed M K h t : 1 < M -> gamma M K h t = speed M (M * h (t / K)).
Proof. intro HM. unfold gamma, speed. pose proof (exp_pos (M * h (t / K))). field. lra. Qed.

Lemma is_derive_speed M x : 1 < M ->
  is_derive (speed M) x ((M - 1) ^ 2 / M * ((M - 1 - (x - 1) * exp x) / (M - 1 + exp x) ^ 2)).
Proof.
  intro HM. unfold speed. pose proof (exp_pos x). auto_derive; [lra|]. unfold Rminus. field. lra.
Qed.

Definition decides (M x : R) : R := M - 1 - (x - 1) * exp x.

Lemma decides_falls M a b : 0 <= a < b -> decides M b < decides M a.
Proof.
  intros [P L]. apply (falling_strictly (decides M) (fun x => - (x * exp x)) a b L).
  - intros x _. unfold decides. auto_derive; [easy|]. ring.
  - intros x B. pose proof (exp_pos x). nra.
Qed.

(** u* = 1 + W((M - 1)/e): the equation that Lambert's function W solves, w exp(w) = (M - 1)/e, for w = u - 1. *)
Definition is_peak_margin (M u : R) : Prop := 1 < u /\ (u - 1) * exp (u - 1) = (M - 1) / exp 1.

Lemma peak_margin_eq M u : is_peak_margin M u -> (u - 1) * exp u = M - 1.
Proof.
  intros [_ E]. replace (exp u) with (exp (u - 1) * exp 1) by (rewrite <- exp_plus; f_equal; ring).
  rewrite <- Rmult_assoc, E. pose proof (exp_pos 1). field. lra.
Qed.

(** @statement Scan and Snap: Transition time
    @kind part
    @hypotheses M > 1
    @formula there is exactly one ustar > 1 with (ustar - 1) exp(ustar - 1) = (M - 1)/e, that is ustar = 1 + W((M - 1)/e) *)
Theorem peak_margin_exists_once :
  forall M, 1 < M -> exists u, is_peak_margin M u /\ forall v, is_peak_margin M v -> v = u.
Proof.
  intros M HM.
  destruct (IVT_cor (fun x => (x - 1) * exp (x - 1) - (M - 1) / exp 1) 1 M) as [u [B E]].
  - intro x. apply (is_derive_continuity_pt _ x (x * exp (x - 1))). auto_derive; [easy|]. unfold Rminus. ring.
  - lra.
  - rewrite Rminus_eq_0. pose proof (exp_pos 1). pose proof (exp_pos (M - 1)).
    assert (0 < (M - 1) / exp 1) by (apply Rdiv_lt_0_compat; lra).
    assert ((M - 1) / exp 1 <= (M - 1) * exp (M - 1)).
    { apply Rmult_le_compat_l; [lra|]. pose proof (exp_above_line 1). pose proof (exp_above_line (M - 1)).
      apply Rle_trans with (/ 1); [apply Rinv_le_contravar; lra|rewrite Rinv_1; lra]. }
    set (c := (M - 1) / exp 1) in *. set (d := (M - 1) * exp (M - 1)) in *.
    nra.
  - assert (Pu : is_peak_margin M u).
    { split; [|lra]. destruct (Req_dec u 1) as [->|N]; [|lra]. exfalso.
      rewrite Rminus_eq_0, Rmult_0_l in E. assert (0 < (M - 1) / exp 1); [|lra].
      apply Rdiv_lt_0_compat; [lra|apply exp_pos]. }
    exists u. split; [exact Pu|]. intros v Pv.
    pose proof (peak_margin_eq M u Pu). pose proof (peak_margin_eq M v Pv). destruct Pu as [Lu _], Pv as [Lv _].
    destruct (Rtotal_order v u) as [L|[L|L]]; [|exact L|].
    + pose proof (decides_falls M v u). unfold decides in *. lra.
    + pose proof (decides_falls M u v). unfold decides in *. lra.
Qed.

(** t* *)
Definition peak_time (M K eta u : R) : R := K * (exp u + (M - 1) * u - 1) / (M * eta).

Lemma speed_rises M u a b : 1 < M -> is_peak_margin M u -> 0 <= a < b -> b <= u -> speed M a < speed M b.
Proof.
  intros HM Hu [P L] B. pose proof (peak_margin_eq M u Hu) as E.
  apply (growing_strictly (speed M) _ a b L (fun x _ => is_derive_speed M x HM)).
  intros x X. pose proof (exp_pos x). pose proof (decides_falls M x u) as F. unfold decides in F.
  apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; nra|]. apply Rdiv_lt_0_compat; nra.
Qed.

Lemma speed_falls M u a b : 1 < M -> is_peak_margin M u -> u <= a < b -> speed M b < speed M a.
Proof.
  intros HM Hu [P L]. pose proof (peak_margin_eq M u Hu) as E. destruct Hu as [U _].
  apply (falling_strictly (speed M) _ a b L (fun x _ => is_derive_speed M x HM)).
  intros x X. pose proof (exp_pos x). pose proof (decides_falls M u x) as F. unfold decides in F.
  assert (0 < (M - 1) ^ 2 / M) by (apply Rdiv_lt_0_compat; nra).
  assert ((M - 1 - (x - 1) * exp x) / (M - 1 + exp x) ^ 2 < 0); [|nra].
  apply div_neg; nra.
Qed.

Lemma margin_at_peak M K eta h u :
  1 < M -> 0 < K -> 0 < eta -> solves M eta h -> is_peak_margin M u ->
  M * h (peak_time M K eta u / K) = u.
Proof.
  intros HM HK He Hs Hu.
  assert (E : h (peak_time M K eta u / K) = u / M); [|rewrite E; field; lra].
  destruct Hu as [Lu _]. pose proof (exp_above_line u).
  apply (psi_injective M); [exact HM|]. rewrite (solves_psi M eta h); try assumption.
  - unfold peak_time, psi. replace (M * (u / M)) with u by (field; lra). field. lra.
  - unfold peak_time. apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat, HK].
    apply Rmult_le_pos; [apply Rmult_le_pos; nra|]. apply Rlt_le, Rinv_0_lt_compat. nra.
Qed.

Lemma margin_increasing M K eta h s t :
  1 < M -> 0 < K -> 0 < eta -> solves M eta h -> 0 <= s < t -> 0 <= M * h (s / K) < M * h (t / K).
Proof.
  intros HM HK He Hs [Ps L].
  assert (Pk : 0 < / K) by now apply Rinv_0_lt_compat.
  assert (0 <= s / K < t / K) by (unfold Rdiv; split; [apply Rmult_le_pos; lra|apply Rmult_lt_compat_r; lra]).
  pose proof (solves_nonneg M eta h (s / K) HM He Hs). pose proof (solves_increasing M eta h (s / K) (t / K) HM He Hs).
  split; [apply Rmult_le_pos; lra|apply Rmult_lt_compat_l; lra].
Qed.

Lemma peak_time_pos M K eta u : 1 < M -> 0 < K -> 0 < eta -> is_peak_margin M u -> 0 < peak_time M K eta u.
Proof.
  intros HM HK He [Lu _]. unfold peak_time. pose proof (exp_above_line u).
  apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; nra|nra].
Qed.

(** @statement Scan and Snap: Transition time
    @kind clause
    @hypotheses M > 1, K > 0, eta_Y > 0; h solves (44); ustar > 1 with (ustar - 1) exp(ustar - 1) = (M - 1)/e
    @formula with tstar = K (exp(ustar) + (M - 1) ustar - 1)/(M eta_Y): gamma(tstar) = (M - 1)/M (ustar - 1); gamma rises
      strictly on [0, tstar] and falls strictly from tstar on, so that gamma(t) < gamma(tstar) for every other t >= 0 *)
Theorem peak_of_gamma :
  forall M K eta h u, 1 < M -> 0 < K -> 0 < eta -> solves M eta h -> is_peak_margin M u ->
  let tstar := K * (exp u + (M - 1) * u - 1) / (M * eta) in
  gamma M K h tstar = (M - 1) / M * (u - 1) /\
  (forall s t, 0 <= s < t -> t <= tstar -> gamma M K h s < gamma M K h t) /\
  (forall s t, tstar <= s < t -> gamma M K h t < gamma M K h s) /\
  (forall t, 0 <= t -> t <> tstar -> gamma M K h t < gamma M K h tstar).
Proof.
  intros M K eta h u HM HK He Hs Hu tstar. change tstar with (peak_time M K eta u). clear tstar.
  set (t' := peak_time M K eta u).
  pose proof (margin_at_peak M K eta h u HM HK He Hs Hu) as E. fold t' in E.
  pose proof (peak_time_pos M K eta u HM HK He Hu) as P. fold t' in P.
  assert (Rise : forall s t, 0 <= s < t -> t <= t' -> gamma M K h s < gamma M K h t).
  { intros s t B L. rewrite !gamma_speed by exact HM.
    pose proof (margin_increasing M K eta h s t HM HK He Hs B).
    apply (speed_rises M u); try assumption. rewrite <- E.
    destruct L as [L| ->]; [|lra]. pose proof (margin_increasing M K eta h t t' HM HK He Hs). lra. }
  assert (Fall : forall s t, t' <= s < t -> gamma M K h t < gamma M K h s).
  { intros s t [L B]. rewrite !gamma_speed by exact HM.
    pose proof (margin_increasing M K eta h s t HM HK He Hs).
    apply (speed_falls M u); try assumption. rewrite <- E. split; [|lra].
    destruct L as [L| ->]; [|lra]. pose proof (margin_increasing M K eta h t' s HM HK He Hs). lra. }
  repeat split; try assumption.
  - rewrite gamma_speed, E by exact HM. unfold speed. pose proof (peak_margin_eq M u Hu) as Q.
    destruct Hu as [Lu _]. pose proof (exp_pos u).
    replace (M - 1 + exp u) with (u * exp u) by lra.
    replace ((M - 1) ^ 2) with ((M - 1) * ((u - 1) * exp u)) by (rewrite Q; ring). field. lra.
  - intros t P0 N. destruct (Rle_lt_dec t t') as [L|L]; [apply Rise; lra|apply Fall; lra].
Qed.

(** The room between K ln M/eta and the peak, over K/(M eta), as a function of u*. *)
Lemma bracket_room_grows a b : 2 <= a <= b ->
  let room u := (1 + (u - 1) * exp u) * ln (1 + (u - 1) * exp u) - (exp u + (u - 1) * exp u * u - 1) in
  room a <= room b.
Proof.
  intros [P L] room.
  assert (Pos : forall u, 2 <= u -> exp u <= 1 + (u - 1) * exp u).
  { intros u U. pose proof (exp_pos u). nra. }
  apply (growing room (fun u => u * exp u * (ln (1 + (u - 1) * exp u) - u)) a b L).
  - intros u B. unfold room. pose proof (Pos u). pose proof (exp_pos u). auto_derive; [lra|]. unfold Rminus. field. lra.
  - intros u B. pose proof (exp_pos u). pose proof (Pos u).
    assert (u <= ln (1 + (u - 1) * exp u)).
    { rewrite <- (ln_exp u) at 1. apply ln_le; [lra|apply Pos; lra]. }
    apply Rmult_le_pos; [nra|lra].
Qed.

(** @statement Scan and Snap: Transition time
    @kind besides
    @hypotheses M >= 19, K > 0, eta_Y > 0; ustar > 1 with (ustar - 1) exp(ustar - 1) = (M - 1)/e, and
      tstar = K (exp(ustar) + (M - 1) ustar - 1)/(M eta_Y)
    @formula tstar <= t_0' = K ln(M)/eta_Y
    @note With 18 tokens it fails, by the next theorem. *)
Theorem peak_before_first_bracket :
  forall M K eta u, 19 <= M -> 0 < K -> 0 < eta -> is_peak_margin M u ->
  K * (exp u + (M - 1) * u - 1) / (M * eta) <= K * ln M / eta.
Proof.
  intros M K eta u HM HK He Hu. pose proof (peak_margin_eq M u Hu) as E.
  assert (N1 : exp 2.489 <= 12.0493) by (apply (exp_upper 2.489 15); by_series).
  assert (N2 : 12.0491 <= exp 2.489).
  { apply Rle_trans with (series 2.489 15); [by_series|apply exp_lower; lra]. }
  assert (N3 : exp 2.9412 <= 18.9386) by (apply (exp_upper 2.9412 17); by_series).
  assert (N4 : 2.9412 <= ln (1 + (2.489 - 1) * exp 2.489)).
  { rewrite <- (ln_exp 2.9412). apply ln_le; [apply exp_pos|lra]. }
  assert (R0 : 0 <= (1 + (2.489 - 1) * exp 2.489) * ln (1 + (2.489 - 1) * exp 2.489)
      - (exp 2.489 + (2.489 - 1) * exp 2.489 * 2.489 - 1)) by nra.
  assert (L : 2.489 <= u).
  { destruct (Rle_lt_dec 2.489 u) as [|G]; [easy|exfalso].
    pose proof (decides_falls M u 2.489) as F. unfold decides in F. destruct Hu as [Lu _].
    specialize (F ltac:(lra)). lra. }
  assert (L2 : 2 <= 2.489 <= u) by lra.
  pose proof (bracket_room_grows 2.489 u L2) as R.
  cbv zeta beta in R. rewrite E in R. replace (1 + (M - 1)) with M in R by ring.
  apply (Rmult_le_reg_l (M * eta / K)).
  - apply Rdiv_lt_0_compat; nra.
  - replace (M * eta / K * (K * (exp u + (M - 1) * u - 1) / (M * eta))) with (exp u + (M - 1) * u - 1) by (field; lra).
    replace (M * eta / K * (K * ln M / eta)) with (M * ln M) by (field; lra). lra.
Qed.

(** @statement Scan and Snap: Transition time
    @kind besides
    @hypotheses M = 18, K > 0, eta_Y > 0; ustar > 1 with (ustar - 1) exp(ustar - 1) = (M - 1)/e, and
      tstar = K (exp(ustar) + (M - 1) ustar - 1)/(M eta_Y)
    @formula tstar > t_0' = K ln(M)/eta_Y
    @note So 19 is the least number of tokens from which on the bound above holds. *)
Theorem peak_behind_first_bracket_for_few_tokens :
  forall K eta u, 0 < K -> 0 < eta -> is_peak_margin 18 u ->
  K * ln 18 / eta < K * (exp u + (18 - 1) * u - 1) / (18 * eta).
Proof.
  intros K eta u HK He Hu. pose proof (peak_margin_eq 18 u Hu) as E.
  assert (N1 : exp 2.456 <= 11.66) by (apply (exp_upper 2.456 15); by_series).
  assert (N2 : 11.65 <= exp 2.456).
  { apply Rle_trans with (series 2.456 15); [by_series|apply exp_lower; lra]. }
  assert (N3 : 18 <= exp 2.9).
  { apply Rle_trans with (series 2.9 15); [by_series|apply exp_lower; lra]. }
  assert (N4 : ln 18 <= 2.9).
  { rewrite <- (ln_exp 2.9). apply ln_le; lra. }
  assert (L : 2.456 <= u).
  { destruct (Rle_lt_dec 2.456 u) as [|G]; [easy|exfalso]. destruct Hu as [Lu _].
    pose proof (decides_falls 18 u 2.456) as F. unfold decides in F. specialize (F ltac:(lra)). lra. }
  pose proof (exp_le _ _ L) as X.
  apply (Rmult_lt_reg_l (18 * eta / K)).
  - apply Rdiv_lt_0_compat; lra.
  - replace (18 * eta / K * (K * (exp u + (18 - 1) * u - 1) / (18 * eta))) with (exp u + (18 - 1) * u - 1) by (field; lra).
    replace (18 * eta / K * (K * ln 18 / eta)) with (18 * ln 18) by (field; lra). lra.
Qed.

(** The room up to the second bracket, 2 K ln M/eta. *)
(** @statement Scan and Snap: Transition time
    @kind besides
    @hypotheses M >= 3, K > 0, eta_Y > 0; ustar > 1 with (ustar - 1) exp(ustar - 1) = (M - 1)/e, and
      tstar = K (exp(ustar) + (M - 1) ustar - 1)/(M eta_Y)
    @formula tstar < t_0 = 2 K ln(M)/eta_Y *)
Theorem peak_before_second_bracket :
  forall M K eta u, 3 <= M -> 0 < K -> 0 < eta -> is_peak_margin M u ->
  K * (exp u + (M - 1) * u - 1) / (M * eta) < 2 * K * ln M / eta.
Proof.
  intros M K eta u HM HK He Hu. pose proof (peak_margin_eq M u Hu) as E.
  set (room := fun u => 2 * (1 + (u - 1) * exp u) * ln (1 + (u - 1) * exp u) - (exp u + (u - 1) * exp u * u - 1)).
  assert (N1 : exp 1.46 <= 4.306) by (apply (exp_upper 1.46 12); by_series).
  assert (N2 : 4.305 <= exp 1.46).
  { apply Rle_trans with (series 1.46 12); [by_series|apply exp_lower; lra]. }
  assert (N3 : exp 1.08 <= 2.95) by (apply (exp_upper 1.08 10); by_series).
  assert (N4 : 1.08 <= ln (1 + (1.46 - 1) * exp 1.46)).
  { rewrite <- (ln_exp 1.08). apply ln_le; [apply exp_pos|lra]. }
  assert (N5 : 2.7 < exp 1).
  { apply Rlt_le_trans with (series 1 8); [by_series|apply exp_lower; lra]. }
  assert (R0 : 0 < room 1.46) by (unfold room; nra).
  assert (L : 1.46 <= u).
  { destruct (Rle_lt_dec 1.46 u) as [|G]; [easy|exfalso].
    pose proof (decides_falls M u 1.46) as F. unfold decides in F. destruct Hu as [Lu _].
    specialize (F ltac:(lra)). lra. }
  assert (R : room 1.46 <= room u).
  { apply (growing room (fun u => u * exp u * (2 * ln (1 + (u - 1) * exp u) + 1 - u)) 1.46 u L).
    - intros v B. unfold room. pose proof (exp_pos v). auto_derive; [nra|]. unfold Rminus. field. nra.
    - intros v [B _]. pose proof (exp_pos v). apply Rmult_le_pos; [nra|].
      assert (exp (v - 1) <= 1 + (v - 1) * exp v).
      { replace (exp v) with (exp (v - 1) * exp 1) by (rewrite <- exp_plus; f_equal; ring).
        pose proof (exp_pos (v - 1)).
        assert (1 <= (v - 1) * exp 1) by nra. nra. }
      assert (v - 1 <= ln (1 + (v - 1) * exp v)).
      { rewrite <- (ln_exp (v - 1)) at 1. apply ln_le; [apply exp_pos|lra]. }
      lra. }
  unfold room in R, R0. rewrite E in R. replace (1 + (M - 1)) with M in R by ring.
  apply (Rmult_lt_reg_l (M * eta / K)).
  - apply Rdiv_lt_0_compat; nra.
  - replace (M * eta / K * (K * (exp u + (M - 1) * u - 1) / (M * eta))) with (exp u + (M - 1) * u - 1) by (field; lra).
    replace (M * eta / K * (2 * K * ln M / eta)) with (2 * M * ln M) by (field; lra). lra.
Qed.
