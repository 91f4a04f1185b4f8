(** Lemma 7(b): the steps' lead over the flow vanishes. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Calculus.
From Formal.scan_and_snap Require Import Growth Lemma7.
Open Scope R_scope.

(** exp(M x) is at least psi/M. *)
Lemma psi_below M x : 1 < M -> psi M x <= M * exp (M * x).
Proof. intro HM. unfold psi. pose proof (exp_above_line (M * x)). nra. Qed.

Lemma power_grows M eta s : 1 < M -> 0 < eta ->
  Rmin eta (/ M) * (INR s + 1) <= exp (M * steps M eta s).
Proof.
  intros HM He. pose proof (steps_psi M eta s HM He) as P. pose proof (psi_below M (steps M eta s) HM) as Q.
  pose proof (pos_INR s). pose proof (Rmin_l eta (/ M)). pose proof (Rmin_r eta (/ M)).
  apply (Rmult_le_reg_l M); [lra|]. apply Rle_trans with (M * eta * INR s + 1); [|lra].
  assert (M * / M = 1) by (field; lra).
  assert (Rmin eta (/ M) * INR s <= eta * INR s) by (apply Rmult_le_compat_r; lra).
  assert (M * (Rmin eta (/ M) * (INR s + 1)) <= M * (eta * INR s + / M)); [|nra].
  apply Rmult_le_compat_l; lra.
Qed.

Lemma lag_slow M eta s : 1 < M -> 0 < eta ->
  lag M eta (S s) - lag M eta s <= M * eta * exp eta / (2 * Rmin eta (/ M)) * / (INR s + 1).
Proof.
  intros HM He. pose proof (lag_step M eta s HM He) as E. pose proof (power_grows M eta s HM He) as G.
  pose proof (stride_pos M eta s HM He) as D0. pose proof (stride_small M eta s HM He) as D1.
  set (x := exp (M * steps M eta s)) in *. set (d := stride M eta s) in *.
  assert (Px : 0 < x) by apply exp_pos.
  assert (Ed : d * (M - 1 + x) = M * eta) by (unfold d, stride, rate; fold x; field; lra).
  set (c := Rmin eta (/ M)) in *.
  assert (Pc : 0 < c) by (apply Rmin_glb_lt; [exact He|apply Rinv_0_lt_compat; lra]).
  pose proof (pos_INR s) as Ps.
  pose proof (exp_excess d (Rlt_le _ _ D0)) as X.
  pose proof (exp_step_high 0 d) as Y. rewrite exp_0 in Y.
  assert (Ee : exp d <= exp eta) by now apply exp_le. pose proof (exp_pos d).
  assert (Z : exp d - 1 - d <= d * (exp eta * d) / 2) by nra.
  assert (Dx : d * x <= M * eta) by nra.
  (* x d^2 <= (M eta)^2/x *)
  assert (A : M * eta * (lag M eta (S s) - lag M eta s) <= M * eta * (exp eta * d / 2)).
  { rewrite E. apply Rle_trans with (x * (d * (exp eta * d) / 2)); [apply Rmult_le_compat_l; lra|].
    replace (x * (d * (exp eta * d) / 2)) with (d * x * (exp eta * d / 2)) by field.
    apply Rmult_le_compat_r; [|exact Dx]. pose proof (exp_pos eta). nra. }
  apply Rmult_le_reg_l in A; [|nra].
  apply Rle_trans with (1 := A). pose proof (exp_pos eta) as Pe.
  assert (Dd : d <= M * eta * / (c * (INR s + 1))).
  { apply (Rmult_le_reg_r (c * (INR s + 1))); [apply Rmult_lt_0_compat; lra|].
    replace (M * eta * / (c * (INR s + 1)) * (c * (INR s + 1))) with (M * eta) by (field; lra).
    apply Rle_trans with (d * x); [apply Rmult_le_compat_l; lra|exact Dx]. }
  replace (M * eta * exp eta / (2 * c) * / (INR s + 1)) with (exp eta * (M * eta * / (c * (INR s + 1))) / 2) by (field; lra).
  apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra.
Qed.

Lemma root_step x : 0 <= x -> / (x + 1) <= 2 * (sqrt (x + 1) - sqrt x).
Proof.
  intro P. pose proof (sqrt_sqrt x P) as A. pose proof (sqrt_sqrt (x + 1) ltac:(lra)) as B.
  pose proof (sqrt_pos x). assert (sqrt x <= sqrt (x + 1)) by (apply sqrt_le_1_alt; lra).
  pose proof (sqrt_le_1_alt 1 (x + 1) ltac:(lra)) as One. rewrite sqrt_1 in One.
  set (a := sqrt x) in *. set (b := sqrt (x + 1)) in *.
  assert (E : (b - a) * (b + a) = 1) by (replace ((b - a) * (b + a)) with (b * b - a * a) by ring; lra).
  rewrite <- B. apply (Rmult_le_reg_r (b * b)); [nra|]. rewrite Rinv_l by nra.
  assert (b + a <= 2 * b * b) by nra.
  assert (1 <= (b - a) * (2 * b * b)); [|lra]. rewrite <- E at 1. apply Rmult_le_compat_l; lra.
Qed.

Lemma lag_bound M eta s : 1 < M -> 0 < eta -> lag M eta s <= M * eta * exp eta / Rmin eta (/ M) * sqrt (INR s).
Proof.
  intros HM He. set (A := M * eta * exp eta / Rmin eta (/ M)).
  assert (Pc : 0 < Rmin eta (/ M)) by (apply Rmin_glb_lt; [exact He|apply Rinv_0_lt_compat; lra]).
  assert (PA : 0 < A).
  { apply Rdiv_lt_0_compat; [|exact Pc]. pose proof (exp_pos eta). apply Rmult_lt_0_compat; nra. }
  induction s.
  - rewrite lag_0 by assumption. simpl. rewrite sqrt_0. lra.
  - pose proof (lag_slow M eta s HM He) as L. pose proof (root_step (INR s) (pos_INR s)) as R. rewrite S_INR.
    replace (M * eta * exp eta / (2 * Rmin eta (/ M))) with (A / 2) in L by (unfold A; field; lra). nra.
Qed.

(** @statement Scan and Snap: Lemma 7
    @clause (b)
    @kind clause
    @hypotheses M > 1, eta_Y > 0; h solves (44), hstar has the steps (33)
    @formula hstar(s) - h(s) tends to 0 as the whole number s grows *)
Theorem lemma7b :
  forall M eta h, 1 < M -> 0 < eta -> solves M eta h ->
  is_lim_seq (fun s => steps M eta s - h (INR s)) 0.
Proof.
  intros M eta h HM He Hs. set (A := M * eta * exp eta / Rmin eta (/ M)).
  assert (Pc : 0 < Rmin eta (/ M)) by (apply Rmin_glb_lt; [exact He|apply Rinv_0_lt_compat; lra]).
  assert (PA : 0 < A).
  { apply Rdiv_lt_0_compat; [|exact Pc]. pose proof (exp_pos eta). apply Rmult_lt_0_compat; nra. }
  assert (B : forall s, (0 < s)%nat -> (steps M eta s - h (INR s)) * sqrt (INR s) <= A).
  { intros s Ps. apply lt_INR in Ps. simpl in Ps.
    pose proof (solves_psi M eta h (INR s) HM He Hs (Rlt_le _ _ Ps)) as E.
    pose proof (lemma7_bound M eta h HM He Hs s) as [N _].
    pose proof (psi_step M (h (INR s)) (steps M eta s) HM) as T.
    pose proof (psi_below M (h (INR s)) HM) as G.
    pose proof (lag_bound M eta s HM He) as L. fold A in L. unfold lag in L.
    set (g := steps M eta s - h (INR s)) in *. set (x := exp (M * h (INR s))) in *.
    pose proof (sqrt_sqrt (INR s) (Rlt_le _ _ Ps)) as Q. pose proof (sqrt_lt_R0 _ Ps) as PQ.
    set (r := sqrt (INR s)) in *.
    assert (L1 : psi M (steps M eta s) - psi M (h (INR s)) <= M * eta * (A * r)).
    { apply Rmult_le_compat_l with (r := M * eta) in L; [|nra].
      replace (M * eta * ((psi M (steps M eta s) - 1) / (M * eta) - INR s)) with (psi M (steps M eta s) - 1 - M * eta * INR s)
        in L by (field; lra). lra. }
    assert (L2 : M * (eta * INR s) * g <= M * eta * (A * r)).
    { apply Rle_trans with (2 := L1). apply Rle_trans with (2 := T). apply Rmult_le_compat_r; [exact N|].
      apply Rmult_le_compat_l; [lra|]. assert (M * (eta * INR s) <= M * x) by lra. apply Rmult_le_reg_l in H; lra. }
    apply (Rmult_le_reg_l (M * eta * r)); [apply Rmult_lt_0_compat; nra|].
    replace (M * eta * r * (g * r)) with (M * (eta * (r * r)) * g) by ring. rewrite Q. lra. }
  apply is_lim_seq_spec. intros [eps Pe]. simpl.
  destruct (INR_above ((A / eps) ^ 2)) as [m Lm]. exists (S m). intros s Ls.
  pose proof (lemma7_bound M eta h HM He Hs s) as [N _].
  pose proof (B s ltac:(lia)) as Bs.
  rewrite Rminus_0_r, Rabs_pos_eq by exact N.
  assert (Pae : 0 < A / eps) by now apply Rdiv_lt_0_compat.
  assert (R : A / eps < sqrt (INR s)).
  { rewrite <- (sqrt_pow2 (A / eps)) by lra. apply sqrt_lt_1_alt. split; [apply pow2_ge_0|].
    apply Rlt_trans with (1 := Lm). apply lt_INR. lia. }
  apply (Rmult_lt_reg_r (sqrt (INR s))); [lra|]. apply Rle_lt_trans with (1 := Bs).
  apply Rle_lt_trans with (eps * (A / eps)); [right; field; lra|]. now apply Rmult_lt_compat_l.
Qed.
