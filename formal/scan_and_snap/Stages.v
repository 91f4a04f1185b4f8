(** Lemma 9 and Theorem 1(b): how fast gamma grows and falls. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Calculus.
From Formal.scan_and_snap Require Import Growth Lemma7 Peak.
Open Scope R_scope.

Section Stages.
Variables (M K eta : R) (h : R -> R) (t : R).
Hypotheses (HM : 1 < M) (HK : 0 < K) (He : 0 < eta) (Hs : solves M eta h) (Ht : 0 < t).
Let x := M * h (t / K).
Let tau := eta * t / K.

Let Pt : 0 < t / K.
Proof. apply Rdiv_lt_0_compat; assumption. Qed.

Let closed : exp x + (M - 1) * x = M * tau + 1.
Proof.
  pose proof (lemma6_closed_form M eta h HM He Hs (t / K) (Rlt_le _ _ Pt)) as E. unfold x, tau. rewrite E. field. lra.
Qed.

Let x_nonneg : 0 <= x.
Proof. apply Rmult_le_pos; [lra|]. apply (solves_nonneg M eta); try assumption. apply Rlt_le, Pt. Qed.

Let x_below : x <= tau.
Proof. pose proof (exp_above_line x). apply (Rmult_le_reg_l M); lra. Qed.

Let as_speed : gamma M K h t = (M - 1) ^ 2 / M * (x / (M - 1 + exp x)).
Proof. rewrite gamma_speed by exact HM. reflexivity. Qed.

Lemma early : gamma M K h t <= ((M - 1) / M) ^ 2 * tau.
Proof.
  rewrite as_speed. assert (1 <= exp x) by (rewrite <- exp_0; apply exp_le, x_nonneg).
  assert (x / (M - 1 + exp x) <= tau / M).
  { apply Rle_trans with (x / M); [apply Rmult_le_compat_l; [exact x_nonneg|apply Rinv_le_contravar; lra]|].
    apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat; lra|exact x_below]. }
  replace (((M - 1) / M) ^ 2 * tau) with ((M - 1) ^ 2 / M * (tau / M)) by (field; lra).
  apply Rmult_le_compat_l; [|assumption]. apply Rlt_le, Rdiv_lt_0_compat; [apply pow_lt; lra|lra].
Qed.

Lemma late : 1 <= (M - 1) * x -> (M - 1) * x <= exp x ->
  gamma M K h t <= 2 * ((M - 1) / M) ^ 2 * (ln (M * tau) / tau).
Proof.
  intros One Past. rewrite as_speed. pose proof closed as C.
  assert (Pu : 0 < tau) by (unfold tau; apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; assumption|exact HK]).
  assert (Pm : 0 < M * tau) by (apply Rmult_lt_0_compat; lra).
  assert (Lx : x <= ln (M * tau)).
  { rewrite <- (ln_exp x). apply ln_le; [apply exp_pos|lra]. }
  assert (Q : x / (M - 1 + exp x) <= ln (M * tau) * (2 / (M * tau))).
  { apply Rmult_le_compat; [exact x_nonneg|apply Rlt_le, Rinv_0_lt_compat; pose proof (exp_pos x); lra|exact Lx|].
    replace (2 / (M * tau)) with (/ (M * tau / 2)) by (field; lra). apply Rinv_le_contravar; lra. }
  replace (2 * ((M - 1) / M) ^ 2 * (ln (M * tau) / tau)) with ((M - 1) ^ 2 / M * (ln (M * tau) * (2 / (M * tau))))
    by (field; lra).
  apply Rmult_le_compat_l; [|exact Q]. apply Rlt_le, Rdiv_lt_0_compat; [apply pow_lt; lra|lra].
Qed.
End Stages.

(** @statement Scan and Snap: Theorem 1(b)
    @kind part
    @hypotheses M > 1, K > 0, eta_Y > 0; h solves (44); any t > 0
    @formula gamma(t) <= ((M - 1)/M)^2 eta_Y t/K
    @note At all times, not only up to K ln(M)/eta_Y. *)
Theorem theorem1b_early :
  forall M K eta h t, 1 < M -> 0 < K -> 0 < eta -> solves M eta h -> 0 < t ->
  gamma M K h t <= ((M - 1) / M) ^ 2 * (eta * t / K).
Proof. intros M K eta h t HM HK He Hs Ht. exact (early M K eta h t HM HK He Hs Ht). Qed.

(** @statement Scan and Snap: Theorem 1(b)
    @kind part
    @hypotheses M > 1, K > 0, eta_Y > 0; h solves (44); a t > 0 with 1 <= (M - 1) M h <= exp(M h), h = h(t/K)
    @formula gamma(t) <= 2 ((M - 1)/M)^2 K ln(M eta_Y t/K)/(eta_Y t)
    @note The stage stands as a condition on h: that every t >= 2 (1 + omega_1) K ln(M)/eta_Y is in it is not
      part of it. With M in the logarithm, which (b) as printed lacks. *)
Theorem theorem1b_late :
  forall M K eta h t, 1 < M -> 0 < K -> 0 < eta -> solves M eta h -> 0 < t ->
  1 <= (M - 1) * (M * h (t / K)) -> (M - 1) * (M * h (t / K)) <= exp (M * h (t / K)) ->
  gamma M K h t <= 2 * ((M - 1) / M) ^ 2 * (ln (M * (eta * t / K)) / (eta * t / K)).
Proof. intros M K eta h t HM HK He Hs Ht. exact (late M K eta h t HM HK He Hs Ht). Qed.
