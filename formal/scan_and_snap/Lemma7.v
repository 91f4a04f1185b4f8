(** Lemma 7: how far the steps h* run ahead of the flow h; and Remark 2, which is false. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums Calculus.
From Formal.scan_and_snap Require Import Growth.
Open Scope R_scope.

Lemma steps_nonneg M eta s : 1 < M -> 0 < eta -> 0 <= steps M eta s.
Proof.
  intros HM He. induction s; simpl; [lra|]. pose proof (rate_pos M eta (steps M eta s) HM He). lra.
Qed.

Lemma rate_falls M eta a b : 1 < M -> 0 < eta -> a <= b -> rate M eta b <= rate M eta a.
Proof.
  intros HM He L. unfold rate. apply Rmult_le_compat_l; [lra|].
  pose proof (exp_pos (M * a)).
  assert (exp (M * a) <= exp (M * b)) by (apply exp_le; nra).
  apply Rinv_le_contravar; lra.
Qed.

Lemma rate_0 M eta : 1 < M -> rate M eta 0 = eta / M.
Proof. intro HM. unfold rate. rewrite Rmult_0_r, exp_0. f_equal. ring. Qed.

Lemma rate_is M eta x : 1 < M -> M * (M - 1 + exp (M * x)) * rate M eta x = M * eta.
Proof. intro HM. unfold rate. pose proof (exp_pos (M * x)). field. lra. Qed.

Lemma steps_psi M eta s : 1 < M -> 0 < eta -> M * eta * INR s + 1 <= psi M (steps M eta s).
Proof.
  intros HM He. induction s.
  - simpl. rewrite psi_0. lra.
  - cbn [steps]. rewrite S_INR. set (a := steps M eta s) in *.
    pose proof (psi_step M a (a + rate M eta a) HM) as P.
    replace (a + rate M eta a - a) with (rate M eta a) in P by ring.
    rewrite (rate_is M eta a HM) in P. lra.
Qed.

(** @statement Scan and Snap: Lemma 7
    @clause (a), the bound
    @kind clause
    @hypotheses M > 1, eta_Y > 0; h solves (44), hstar has the steps (33)
    @formula 0 <= hstar(s) - h(s) <= eta_Y/M for every whole number s
    @note Half of the printed 2 eta_Y/M, which follows. *)
Theorem lemma7_bound :
  forall M eta h, 1 < M -> 0 < eta -> solves M eta h ->
  forall s, 0 <= steps M eta s - h (INR s) <= eta / M.
Proof.
  intros M eta h HM He Hs s. split.
  - assert (h (INR s) <= steps M eta s); [|lra]. apply (psi_le M); [exact HM|].
    rewrite (solves_psi M eta h) by (auto using pos_INR). now apply steps_psi.
  - induction s.
    + simpl. destruct Hs as [-> _]. rewrite Rminus_0_r. apply Rlt_le, Rdiv_lt_0_compat; lra.
    + cbn [steps]. set (a := steps M eta s) in *.
      assert (Pa : 0 <= a) by now apply steps_nonneg.
      destruct (Rle_lt_dec a (h (INR (S s)))) as [L|L].
      * pose proof (rate_falls M eta 0 a HM He Pa). rewrite (rate_0 M eta HM) in H. lra.
      * assert (Ph : 0 <= INR s) by apply pos_INR.
        pose proof (solves_psi M eta h (INR s) HM He Hs Ph) as E0.
        assert (Ph' : 0 <= INR (S s)) by apply pos_INR.
        pose proof (solves_psi M eta h (INR (S s)) HM He Hs Ph') as E1.
        rewrite S_INR in *.
        assert (Inc : h (INR s) < h (INR s + 1)) by (apply (solves_increasing M eta h); auto; lra).
        pose proof (psi_step M (h (INR s + 1)) (h (INR s)) HM) as P.
        pose proof (rate_is M eta a HM) as Ra.
        pose proof (rate_pos M eta a HM He) as Rp.
        assert (Le : exp (M * h (INR s + 1)) <= exp (M * a)) by (apply exp_le; nra).
        set (D := M * (M - 1 + exp (M * a))) in *.
        set (D' := M * (M - 1 + exp (M * h (INR s + 1)))) in *.
        assert (D' <= D) by (unfold D, D'; nra).
        assert (PD : 0 < D) by (unfold D; pose proof (exp_pos (M * a)); apply Rmult_lt_0_compat; lra).
        set (g := h (INR s + 1) - h (INR s)) in *.
        assert (G : M * eta <= D' * g).
        { unfold g. lra. }
        assert (D * rate M eta a <= D * g).
        { rewrite Ra. apply Rle_trans with (1 := G). apply Rmult_le_compat_r; unfold g; lra. }
        assert (rate M eta a <= g) by (apply (Rmult_le_reg_l D); lra).
        unfold g in *. lra.
Qed.

(** What the steps run ahead by, in units of time: the flow needs the time (psi(x) - 1)/(M eta) for x = h-star. *)
Definition lag (M eta : R) (s : nat) : R := (psi M (steps M eta s) - 1) / (M * eta) - INR s.

(** A step's length in the margin M h. *)
Definition stride (M eta : R) (s : nat) : R := M * rate M eta (steps M eta s).

Lemma stride_pos M eta s : 1 < M -> 0 < eta -> 0 < stride M eta s.
Proof.
  intros HM He. unfold stride. pose proof (rate_pos M eta (steps M eta s) HM He).
  apply Rmult_lt_0_compat; lra.
Qed.

Lemma stride_small M eta s : 1 < M -> 0 < eta -> stride M eta s <= eta.
Proof.
  intros HM He. unfold stride.
  pose proof (rate_falls M eta 0 _ HM He (steps_nonneg M eta s HM He)) as P.
  rewrite rate_0 in P by exact HM.
  apply Rle_trans with (M * (eta / M)); [apply Rmult_le_compat_l; lra|right; field; lra].
Qed.

(** What a step adds to the lag, exactly. *)
Lemma lag_step M eta s : 1 < M -> 0 < eta ->
  M * eta * (lag M eta (S s) - lag M eta s) =
  exp (M * steps M eta s) * (exp (stride M eta s) - 1 - stride M eta s).
Proof.
  intros HM He. unfold lag, stride. cbn [steps]. rewrite S_INR. set (a := steps M eta s).
  pose proof (rate_is M eta a HM) as Ra. set (r := rate M eta a) in *.
  replace (M * eta * ((psi M (a + r) - 1) / (M * eta) - (INR s + 1) - ((psi M a - 1) / (M * eta) - INR s)))
    with (psi M (a + r) - psi M a - M * eta) by (field; lra).
  rewrite <- Ra. unfold psi. rewrite Rmult_plus_distr_l, exp_plus. ring.
Qed.

Lemma lag_0 M eta : 1 < M -> 0 < eta -> lag M eta 0 = 0.
Proof. intros. unfold lag. simpl. rewrite psi_0. field. lra. Qed.

Lemma exp_after M eta s :
  exp (M * steps M eta (S s)) = exp (M * steps M eta s) * exp (stride M eta s).
Proof. cbn [steps]. unfold stride. rewrite <- exp_plus. f_equal. ring. Qed.

Lemma lag_early M eta s : 1 < M -> 0 < eta -> 2 * M * lag M eta s <= exp (M * steps M eta s) - 1.
Proof.
  intros HM He. induction s.
  - rewrite lag_0 by assumption. simpl. rewrite !Rmult_0_r, exp_0. lra.
  - pose proof (lag_step M eta s HM He) as E. rewrite exp_after.
    pose proof (stride_small M eta s HM He) as S1. pose proof (stride_pos M eta s HM He) as S0.
    set (d := stride M eta s) in *. set (e := exp (M * steps M eta s)) in *.
    assert (Pe : 0 < e) by apply exp_pos.
    pose proof (exp_excess d (Rlt_le _ _ S0)) as X.
    assert (1 <= exp d) by (pose proof (exp_above_line d); lra).
    assert (M * eta * (lag M eta (S s) - lag M eta s) <= M * eta * (e * (exp d - 1) / (2 * M))).
    { rewrite E. apply Rle_trans with (e * (d * (exp d - 1) / 2)); [nra|].
      replace (M * eta * (e * (exp d - 1) / (2 * M))) with (eta * (e * (exp d - 1)) / 2) by (field; lra).
      assert (0 <= e * (exp d - 1)) by (apply Rmult_le_pos; lra). nra. }
    assert (lag M eta (S s) - lag M eta s <= e * (exp d - 1) / (2 * M)).
    { apply (Rmult_le_reg_l (M * eta)); [nra|lra]. }
    assert (2 * M * (lag M eta (S s) - lag M eta s) <= e * (exp d - 1)).
    { apply Rmult_le_compat_l with (r := 2 * M) in H1; [|lra].
      replace (2 * M * (e * (exp d - 1) / (2 * M))) with (e * (exp d - 1)) in H1 by (field; lra). lra. }
    lra.
Qed.

Lemma steps_slow M eta s : 1 < M -> 0 < eta -> M * steps M eta s <= eta * INR s.
Proof.
  intros HM He. induction s; [simpl; lra|].
  cbn [steps]. rewrite S_INR. pose proof (stride_small M eta s HM He). unfold stride in H. lra.
Qed.

(** @statement Scan and Snap: Lemma 7
    @clause (a), the lag
    @kind clause
    @hypotheses M > 1, eta_Y > 0; h solves (44), hstar has the steps (33); s <= ln(M)/eta_Y
    @formula h(s) <= hstar(s) <= h(s + 1/2)
    @note The printed c = Theta(1) is 1/2. *)
Theorem lemma7_lag :
  forall M eta h, 1 < M -> 0 < eta -> solves M eta h ->
  forall s, INR s <= ln M / eta -> h (INR s) <= steps M eta s <= h (INR s + 1 / 2).
Proof.
  intros M eta h HM He Hs s Ls. split; [pose proof (lemma7_bound M eta h HM He Hs s); lra|].
  pose proof (pos_INR s). apply (psi_le M); [exact HM|].
  rewrite (solves_psi M eta h) by (assumption || lra).
  assert (X : exp (M * steps M eta s) <= M).
  { apply Rle_trans with (exp (ln M)); [|rewrite exp_ln; lra]. apply exp_le.
    apply Rle_trans with (1 := steps_slow M eta s HM He).
    apply Rle_trans with (eta * (ln M / eta)); [apply Rmult_le_compat_l; lra|]. right. field. lra. }
  pose proof (lag_early M eta s HM He) as L.
  assert (Lh : lag M eta s <= 1 / 2).
  { apply (Rmult_le_reg_l (2 * M)); lra. }
  unfold lag in Lh.
  assert (M * eta * ((psi M (steps M eta s) - 1) / (M * eta)) <= M * eta * (INR s + 1 / 2)).
  { apply Rmult_le_compat_l; [nra|lra]. }
  replace (M * eta * ((psi M (steps M eta s) - 1) / (M * eta))) with (psi M (steps M eta s) - 1) in H0 by (field; lra).
  lra.
Qed.

(** The harmonic series has no bound. *)
Lemma harmonic n : ln (INR n + 1) <= Sum n (fun i => / (INR i + 1)).
Proof.
  induction n.
  - simpl. rewrite Rplus_0_l, ln_1. lra.
  - cbn [Sum]. rewrite S_INR. pose proof (pos_INR n).
    assert (Q : ln (INR n + 1 + 1) - ln (INR n + 1) <= / (INR n + 1)); [|lra].
    rewrite <- ln_div by lra.
    replace ((INR n + 1 + 1) / (INR n + 1)) with (1 + / (INR n + 1)) by (field; lra).
    assert (0 < / (INR n + 1)) by (apply Rinv_0_lt_compat; lra).
    rewrite <- (ln_exp (/ (INR n + 1))) at 2. apply ln_le; [lra|apply exp_above_line].
Qed.

(** M - 1 + exp(M h-star) grows at most linearly. *)
Lemma power_bound M eta s : 1 < M -> 0 < eta ->
  M - 1 + exp (M * steps M eta s) <= M * (1 + (exp eta - 1) * INR s).
Proof.
  intros HM He. induction s.
  - simpl. rewrite Rmult_0_r, exp_0. lra.
  - rewrite exp_after, S_INR. set (e := exp (M * steps M eta s)) in *.
    assert (Pe : 0 < e) by apply exp_pos.
    pose proof (stride_pos M eta s HM He) as D0. pose proof (stride_small M eta s HM He) as D1.
    assert (Ed : stride M eta s * (M - 1 + e) = M * eta).
    { unfold stride, rate. fold e. field. lra. }
    set (d := stride M eta s) in *.
    (* (exp d - 1)/d <= (exp eta - 1)/eta, as exp is convex *)
    assert (Cv : eta * (exp d - 1) <= d * (exp eta - 1)).
    { pose proof (exp_step_high 0 d) as H1. rewrite exp_0 in H1.
      pose proof (exp_step_low d eta) as H2. nra. }
    assert (e * (exp d - 1) <= M * (exp eta - 1)).
    { apply (Rmult_le_reg_l eta); [exact He|].
      apply Rle_trans with (e * (d * (exp eta - 1))); [nra|].
      assert (0 <= exp eta - 1) by (pose proof (exp_above_line eta); lra).
      assert (e * d <= M * eta) by nra. nra. }
    lra.
Qed.

Lemma lag_grows M eta s : 1 < M -> 0 < eta ->
  eta / (2 * M * (1 + (exp eta - 1))) * / (INR s + 1) <= lag M eta (S s) - lag M eta s.
Proof.
  intros HM He. pose proof (lag_step M eta s HM He) as E.
  pose proof (power_bound M eta s HM He) as P.
  pose proof (steps_nonneg M eta s HM He) as N.
  assert (Ge : 1 <= exp (M * steps M eta s)) by (rewrite <- exp_0; apply exp_le; nra).
  set (e := exp (M * steps M eta s)) in *.
  assert (Ed : stride M eta s * (M - 1 + e) = M * eta).
  { unfold stride, rate. fold e. field. lra. }
  pose proof (stride_pos M eta s HM He) as D0. set (d := stride M eta s) in *.
  pose proof (exp_square d (Rlt_le _ _ D0)) as Q.
  pose proof (pos_INR s) as Ps.
  assert (Px : 0 <= exp eta - 1) by (pose proof (exp_above_line eta); lra).
  set (w := exp eta - 1) in *.
  assert (PW : M - 1 + e <= M * (1 + w) * (INR s + 1)).
  { apply Rle_trans with (1 := P). nra. }
  (* M eta (gain) >= e d^2/2 = e M eta d/(2 D), and e >= D/M, d = M eta/D *)
  assert (G : M * eta * (d / (2 * M)) <= M * eta * (lag M eta (S s) - lag M eta s)).
  { rewrite E. apply Rle_trans with (e * (d ^ 2 / 2)); [|apply Rmult_le_compat_l; [lra|nra]].
    rewrite <- Ed. replace (d * (M - 1 + e) * (d / (2 * M))) with ((M - 1 + e) / M * (d ^ 2 / 2)) by (field; lra).
    apply Rmult_le_compat_r; [nra|]. apply (Rmult_le_reg_l M); [lra|].
    replace (M * ((M - 1 + e) / M)) with (M - 1 + e) by (field; lra). nra. }
  apply Rmult_le_reg_l in G; [|nra].
  apply Rle_trans with (2 := G).
  apply (Rmult_le_reg_l (2 * M * (1 + w) * (INR s + 1))).
  { repeat apply Rmult_lt_0_compat; lra. }
  replace (2 * M * (1 + w) * (INR s + 1) * (eta / (2 * M * (1 + w)) * / (INR s + 1))) with eta by (field; lra).
  replace (2 * M * (1 + w) * (INR s + 1) * (d / (2 * M))) with ((M * (1 + w) * (INR s + 1)) * d / M) by (field; lra).
  apply (Rmult_le_reg_l M); [lra|].
  replace (M * (M * (1 + w) * (INR s + 1) * d / M)) with (M * (1 + w) * (INR s + 1) * d) by (field; lra).
  nra.
Qed.

Lemma lag_sum M eta s : 1 < M -> 0 < eta ->
  eta / (2 * M * (1 + (exp eta - 1))) * Sum s (fun i => / (INR i + 1)) <= lag M eta s.
Proof.
  intros HM He. induction s.
  - rewrite lag_0 by assumption. simpl. lra.
  - cbn [Sum]. pose proof (lag_grows M eta s HM He). lra.
Qed.

(** @statement Scan and Snap: Remark 2
    @kind erratum
    @hypotheses M > 1, eta_Y > 0; h solves (44), hstar has the steps (33)
    @formula for every c and s_1 there is an s > s_1 with h(s + c) < hstar(s)
    @note The negation of the print for every M and eta_Y, whatever c: not only for c = O(ln M). That the lag is
      about ln(eta_Y s)/2 is not part of it. *)
Theorem remark2_is_false :
  forall M eta h, 1 < M -> 0 < eta -> solves M eta h ->
  forall c s1, exists s, s1 < INR s /\ h (INR s + c) < steps M eta s.
Proof.
  intros M eta h HM He Hs c s1.
  set (q := eta / (2 * M * (1 + (exp eta - 1)))).
  assert (Pq : 0 < q).
  { unfold q. pose proof (exp_pos eta). apply Rdiv_lt_0_compat; [lra|]. nra. }
  set (c' := Rmax 0 c).
  destruct (INR_above (Rmax (Rmax s1 (- c)) (exp ((c' + 1) / q)))) as [s Ls].
  exists s.
  pose proof (Rmax_l (Rmax s1 (- c)) (exp ((c' + 1) / q))) as R1.
  pose proof (Rmax_l s1 (- c)) as R2. pose proof (Rmax_r s1 (- c)) as R3.
  assert (L2 : exp ((c' + 1) / q) < INR s) by (apply Rle_lt_trans with (2 := Ls); apply Rmax_r).
  split; [lra|].
  pose proof (harmonic s) as H. pose proof (lag_sum M eta s HM He) as G. fold q in G.
  assert (L3 : (c' + 1) / q < ln (INR s + 1)).
  { rewrite <- (ln_exp ((c' + 1) / q)). apply ln_increasing; [apply exp_pos|lra]. }
  assert (L4 : c' + 1 < lag M eta s).
  { apply Rlt_le_trans with (q * ln (INR s + 1)); [|nra].
    replace (c' + 1) with (q * ((c' + 1) / q)) by (field; lra). now apply Rmult_lt_compat_l. }
  assert (Pc : 0 <= c' /\ c <= c') by (unfold c'; split; [apply Rmax_l|apply Rmax_r]).
  pose proof (pos_INR s) as Ps.
  assert (Before : h (INR s + c) <= h (INR s + c')).
  { destruct (Req_dec c c') as [<-|N]; [lra|]. apply Rlt_le, (solves_increasing M eta h); auto. lra. }
  apply Rle_lt_trans with (1 := Before). apply (psi_lt M); [exact HM|].
    rewrite (solves_psi M eta h) by (assumption || lra).
    unfold lag in L4.
    assert (Big : M * eta * (INR s + c' + 1) < M * eta * ((psi M (steps M eta s) - 1) / (M * eta))).
    { apply Rmult_lt_compat_l; [nra|lra]. }
    replace (M * eta * ((psi M (steps M eta s) - 1) / (M * eta))) with (psi M (steps M eta s) - 1) in Big by (field; lra).
    assert (0 < M * eta) by nra. lra.
Qed.
