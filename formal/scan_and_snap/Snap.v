(** Theorem 4: the accumulated speed Gamma (128) and the growth exponent B, for equal classes. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Calculus.
From Formal.scan_and_snap Require Import Growth Lemma7 Peak.
Open Scope R_scope.

(** (128) *)
Definition Gamma (M K eta_Y eta_Z : R) (h : R -> R) (t : R) : R :=
  eta_Z * K * (M - 1) ^ 2 * h (t / K) ^ 2 / (2 * eta_Y).

Lemma Gamma_0 M K eta_Y eta_Z h : 1 < M -> 0 < K -> 0 < eta_Y -> solves M eta_Y h -> Gamma M K eta_Y eta_Z h 0 = 0.
Proof.
  intros HM HK He [H0 _]. unfold Gamma. replace (0 / K) with 0 by (field; lra). rewrite H0. field. lra.
Qed.

(** @statement Scan and Snap: Theorem 4
    @clause (128), the accumulated speed
    @kind clause
    @hypotheses M > 1, K > 0, eta_Y > 0; h solves (44); t > 0
    @formula the integral of eta_Z gamma from 0 to t is eta_Z K (M - 1)^2 h(t/K)^2/(2 eta_Y)
    @note The integral is Riemann's. *)
Theorem equation_128 :
  forall M K eta_Y eta_Z h t, 1 < M -> 0 < K -> 0 < eta_Y -> solves M eta_Y h -> 0 < t ->
  is_RInt (fun s => eta_Z * gamma M K h s) 0 t (eta_Z * K * (M - 1) ^ 2 * h (t / K) ^ 2 / (2 * eta_Y)).
Proof.
  intros M K eta_Y eta_Z h t HM HK He Hs Ht.
  (* from the continued solution, for which the fundamental theorem holds at 0, too: by the closed form at all times *)
  destruct (lemma6_existence M eta_Y HM He) as [g [Gs Gd]].
  assert (Q : forall s, 0 <= s -> h s = g s) by (intros; now apply (lemma6_uniqueness M eta_Y)).
  assert (Pk : 0 < / K) by now apply Rinv_0_lt_compat.
  assert (Qk : forall s, 0 <= s -> h (s / K) = g (s / K)) by (intros; apply Q; apply Rmult_le_pos; lra).
  apply (is_RInt_ext (fun s => eta_Z * gamma M K g s)).
  { intros s. rewrite Rmin_left by lra. intros [Ps _]. unfold gamma. rewrite Qk by lra. reflexivity. }
  rewrite Qk by lra.
  assert (D : forall s, is_derive (Gamma M K eta_Y eta_Z g) s (eta_Z * gamma M K g s)).
  { intro s. assert (Dk : is_derive (fun t => t / K) s (/ K)) by (auto_derive; [lra|field; lra]).
    pose proof (is_derive_comp g (fun t => t / K) s _ _ (Gd (s / K)) Dk) as C.
    assert (S : is_derive (fun t => eta_Z * K * (M - 1) ^ 2 / (2 * eta_Y) * (g (t / K) * g (t / K))) s
      (eta_Z * K * (M - 1) ^ 2 / (2 * eta_Y) * (/ K * rate M eta_Y (g (s / K)) * g (s / K) + g (s / K) * (/ K * rate M eta_Y (g (s / K)))))).
    { apply is_derive_scal. apply (is_derive_mult (fun t => g (t / K)) (fun t => g (t / K)) s _ _ C C). apply Rmult_comm. }
    apply (is_derive_ext (fun t => eta_Z * K * (M - 1) ^ 2 / (2 * eta_Y) * (g (t / K) * g (t / K)))).
    - intro x. change (eta_Z * K * (M - 1) ^ 2 / (2 * eta_Y) * (g (x / K) * g (x / K)) = Gamma M K eta_Y eta_Z g x). unfold Gamma. field. lra.
    - replace (eta_Z * gamma M K g s) with
        (eta_Z * K * (M - 1) ^ 2 / (2 * eta_Y) * (/ K * rate M eta_Y (g (s / K)) * g (s / K) + g (s / K) * (/ K * rate M eta_Y (g (s / K)))));
        [exact S|]. unfold gamma, rate. pose proof (exp_pos (M * g (s / K))). field. lra. }
  replace (eta_Z * K * (M - 1) ^ 2 * g (t / K) ^ 2 / (2 * eta_Y))
    with (minus (Gamma M K eta_Y eta_Z g t) (Gamma M K eta_Y eta_Z g 0)).
  - apply (is_RInt_derive (Gamma M K eta_Y eta_Z g)); [intros; apply D|].
    intros s _. apply (continuous_scal_r eta_Z (fun s => gamma M K g s)). unfold gamma.
    apply (ex_derive_continuous (fun s => (M - 1) ^ 2 * g (s / K) / (M - 1 + exp (M * g (s / K))))).
    pose proof (exp_pos (M * g (s / K))).
    auto_derive. repeat split; try lra; exists (rate M eta_Y (g (s * / K))); apply Gd.
  - rewrite (Gamma_0 M K eta_Y eta_Z g HM HK He Gs). unfold minus, plus, opp, Gamma; simpl. field. lra.
Qed.

(** (118)-(124), with the lower limit: z' = - eta_Z gamma exp(4 z)/C_0 from 0. *)
(** @statement Scan and Snap: Theorem 4
    @clause B where the speed is that of a constant C_0
    @kind clause
    @hypotheses C_0 > 0; Gamma(0) = 0 and Gamma' = g, z(0) = 0 and z' = -g exp(4 z)/C_0 for t >= 0, with g =
      eta_Z gamma
    @formula exp(-4 z) = 1 + 4 Gamma/C_0 and -z = ln(1 + 4 Gamma/C_0)/4 for every t >= 0
    @note For any function g. Derivatives at t = 0 are taken from both sides. *)
Theorem theorem4_exponent :
  forall (C0 : R) (g G z : R -> R), 0 < C0 ->
  G 0 = 0 -> z 0 = 0 ->
  (forall t, 0 <= t -> is_derive G t (g t)) ->
  (forall t, 0 <= t -> is_derive z t (- (g t * exp (4 * z t) / C0))) ->
  forall t, 0 <= t -> exp (- 4 * z t) = 1 + 4 * G t / C0 /\ - z t = / 4 * ln (1 + 4 * G t / C0).
Proof.
  intros C0 g G z PC G0 Z0 HG Hz t Ht.
  assert (E : exp (- 4 * z t) = 1 + 4 * G t / C0).
  { destruct (Req_dec t 0) as [->|N].
    - rewrite G0, Z0, Rmult_0_r, exp_0. field. lra.
    - set (D := fun s => exp (- 4 * z s) - 4 / C0 * G s).
      destruct (mean_value D (fun _ => 0) 0 t) as [c [_ Q]]; [lra| |].
      + intros s B. unfold D.
        replace 0 with (minus (- 4 * - (g s * exp (4 * z s) / C0) * exp (- 4 * z s)) (4 / C0 * g s)).
        * apply (is_derive_minus (fun s => exp (- 4 * z s))).
          -- apply (is_derive_comp exp (fun s => - 4 * z s)); [apply is_derive_exp|].
             apply (is_derive_scal z s (- 4)). apply Hz. lra.
          -- apply (is_derive_scal G). apply HG. lra.
        * assert (One : exp (4 * z s) * exp (- 4 * z s) = 1).
          { rewrite <- exp_plus. replace (4 * z s + - 4 * z s) with 0 by ring. apply exp_0. }
          unfold minus, plus, opp; simpl.
          replace (- 4 * - (g s * exp (4 * z s) / C0) * exp (- 4 * z s))
            with (4 / C0 * g s * (exp (4 * z s) * exp (- 4 * z s))) by (field; lra).
          rewrite One. ring.
      + unfold D in Q. rewrite G0, Z0, !Rmult_0_r, exp_0 in Q. unfold Rdiv in *. lra. }
  split; [exact E|]. rewrite <- E, ln_exp. field.
Qed.

(** @statement Scan and Snap: Theorem 4
    @kind erratum
    @hypotheses C_0 > 0, C_0 not 1; Gamma(0) = 0, Gamma' = g and Gamma >= 0, z(0) = 0 and z' = -g exp(4 z)/C_0 for
      t >= 0, with g = eta_Z gamma
    @formula ln(C_0 + 4 Gamma)/4, as printed in (14) and (124), differs from -z by ln(C_0)/4 at every t >= 0: it is
      larger for C_0 > 1, smaller for C_0 < 1
    @note The lower limit of the integral was dropped. *)
Theorem equation_124_as_printed_is_false :
  forall (C0 : R) (g G z : R -> R), 0 < C0 -> C0 <> 1 ->
  G 0 = 0 -> z 0 = 0 ->
  (forall t, 0 <= t -> is_derive G t (g t)) ->
  (forall t, 0 <= t -> is_derive z t (- (g t * exp (4 * z t) / C0))) ->
  (forall t, 0 <= t -> 0 <= G t) ->
  forall t, 0 <= t -> / 4 * ln (C0 + 4 * G t) - - z t = / 4 * ln C0 /\ - z t <> / 4 * ln (C0 + 4 * G t).
Proof.
  intros C0 g G z PC NC G0 Z0 HG Hz Pos t Ht.
  destruct (theorem4_exponent C0 g G z PC G0 Z0 HG Hz t Ht) as [_ L]. pose proof (Pos t Ht).
  assert (0 <= 4 * G t / C0) by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat, PC]).
  assert (S : / 4 * ln (C0 + 4 * G t) - - z t = / 4 * ln C0).
  { rewrite L. replace (C0 + 4 * G t) with (C0 * (1 + 4 * G t / C0)) by (field; lra). rewrite ln_mult by lra. ring. }
  split; [exact S|]. intro Q. rewrite <- Q in S. assert (Z : ln C0 = 0) by lra.
  apply NC. apply ln_inv; [exact PC|lra|]. rewrite Z. symmetry. apply ln_1.
Qed.
