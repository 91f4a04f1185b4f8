(** Theorem 3: the relative gain (11) and the bounds (12) of a dominant distinct token's growth.

    One class in the theory flow: P l >= 0 is the probability of token l, z l its logit, f l its share of the feature.
    q is the class's rate, (eta_Z/K) xi_n as corrected, any function that is not negative; B its integral. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums Calculus.
Open Scope R_scope.

(** f_l = P(l|n) exp(z_l)/|c~_n|. *)
Definition share (P size : R) (z : R) : R := P * exp z / size.

(** What (11) conserves: (P exp z)^-2 of two distinct tokens, their difference. *)
Lemma conserved (P P' : R) (z z' q size : R -> R) :
  0 < P -> 0 < P' -> (forall t, 0 <= t -> 0 < size t) ->
  (forall t, 0 <= t -> is_derive z t (q t * share P (size t) (z t) ^ 2)) ->
  (forall t, 0 <= t -> is_derive z' t (q t * share P' (size t) (z' t) ^ 2)) ->
  forall t, 0 <= t ->
  / P ^ 2 * exp (- 2 * z t) - / P' ^ 2 * exp (- 2 * z' t) = / P ^ 2 * exp (- 2 * z 0) - / P' ^ 2 * exp (- 2 * z' 0).
Proof.
  intros HP HP' HN Hz Hz' t Ht.
  destruct (Req_dec t 0) as [->|Nt]; [reflexivity|].
  assert (One : forall (p : R) (y : R -> R) s, 0 < p -> 0 <= s -> is_derive y s (q s * share p (size s) (y s) ^ 2) ->
    is_derive (fun s => / p ^ 2 * exp (- 2 * y s)) s (- 2 * (q s / size s ^ 2))).
  { intros p y s Hp Hs D. pose proof (HN s Hs).
    replace (- 2 * (q s / size s ^ 2))
      with (/ p ^ 2 * (- 2 * (q s * share p (size s) (y s) ^ 2) * exp (- 2 * y s))).
    - apply is_derive_scal. apply (is_derive_comp exp (fun s => - 2 * y s)); [apply is_derive_exp|].
      apply (is_derive_scal y s (- 2)). exact D.
    - unfold share. assert (E : exp (y s) * exp (y s) * exp (- 2 * y s) = 1).
      { rewrite <- !exp_plus. replace (y s + y s + - 2 * y s) with 0 by ring. apply exp_0. }
      set (e := exp (y s)) in *. set (g := exp (- 2 * y s)) in *.
      replace (/ p ^ 2 * (- 2 * (q s * (p * e / size s) ^ 2) * g)) with (- 2 * (q s / size s ^ 2) * (e * e * g))
        by (field; lra). rewrite E. ring. }
  set (D := fun s => / P ^ 2 * exp (- 2 * z s) - / P' ^ 2 * exp (- 2 * z' s)).
  destruct (mean_value D (fun _ => 0) 0 t) as [c [_ Q]]; [lra| |unfold D in Q; lra].
  intros s B. unfold D. replace 0 with (minus (- 2 * (q s / size s ^ 2)) (- 2 * (q s / size s ^ 2))).
  - apply (is_derive_minus (fun s => / P ^ 2 * exp (- 2 * z s))); apply One; try lra; [apply Hz|apply Hz']; lra.
  - unfold minus, plus, opp; simpl. ring.
Qed.

(** @statement Scan and Snap: Theorem 3
    @clause (11), the relative gain
    @kind clause
    @hypotheses two tokens distinct to n with P(l|n), P(l'|n) > 0, whose logits move for t >= 0 at q f_nl^2 and
      q f_nl'^2 with one function q of time (Theorem 2(a): q = (eta_Z/K) xi_n); f_nl = P(l|n) exp(z_l)/|c~_n|,
      any norm > 0
    @formula r(t) = r(0) chi_l(t), with r = f_nl^2/f_nl'^2 - 1 and chi_l = exp(2 (z_l(t) - z_l(0)))
    @note Derivatives at t = 0 are taken from both sides. *)
Theorem theorem3_relative_gain :
  forall (P P' : R) (z z' q size : R -> R),
  0 < P -> 0 < P' -> (forall t, 0 <= t -> 0 < size t) ->
  (forall t, 0 <= t -> is_derive z t (q t * share P (size t) (z t) ^ 2)) ->
  (forall t, 0 <= t -> is_derive z' t (q t * share P' (size t) (z' t) ^ 2)) ->
  let r t := share P (size t) (z t) ^ 2 / share P' (size t) (z' t) ^ 2 - 1 in
  forall t, 0 <= t -> r t = r 0 * exp (2 * (z t - z 0)).
Proof.
  intros P P' z z' q size HP HP' HN Hz Hz' r t Ht.
  pose proof (conserved P P' z z' q size HP HP' HN Hz Hz' t Ht) as C.
  assert (R : forall s, 0 <= s -> r s = - (P ^ 2 * exp (2 * z s) *
    (/ P ^ 2 * exp (- 2 * z s) - / P' ^ 2 * exp (- 2 * z' s)))).
  { intros s Hs. unfold r, share. pose proof (HN s Hs).
    assert (E : exp (2 * z s) = exp (z s) * exp (z s)) by (rewrite <- exp_plus; f_equal; ring).
    assert (E1 : exp (- 2 * z s) = / (exp (z s) * exp (z s))).
    { rewrite <- exp_plus, <- exp_Ropp. f_equal. ring. }
    assert (E2 : exp (- 2 * z' s) = / (exp (z' s) * exp (z' s))).
    { rewrite <- exp_plus, <- exp_Ropp. f_equal. ring. }
    rewrite E, E1, E2. pose proof (exp_pos (z s)). pose proof (exp_pos (z' s)). field. repeat split; lra. }
  rewrite (R t Ht), (R 0 (Rle_refl 0)), C.
  assert (E : exp (2 * z t) = exp (2 * z 0) * exp (2 * (z t - z 0))) by (rewrite <- exp_plus; f_equal; ring).
  rewrite E. ring.
Qed.

Section OneClass.
Variables (M l0 : nat) (P : nat -> R) (distinct : nat -> bool) (z v : nat -> R -> R) (q B : R -> R).

Definition size (t : R) : R := norm M (fun l => P l * exp (z l t)).
Definition f (l : nat) (t : R) : R := share (P l) (size t) (z l t).

(** Distinct tokens move by Theorem 2(a), all others fall, token l0 is distinct and dominant at the start. *)
Definition theory_flow : Prop :=
  (forall l, 0 <= P l) /\ (l0 < M)%nat /\ distinct l0 = true /\ 0 < P l0 /\
  (forall t, 0 <= t -> 0 <= q t) /\
  (forall l t, (l < M)%nat -> 0 <= t -> distinct l = true -> is_derive (z l) t (q t * f l t ^ 2)) /\
  (forall l t, (l < M)%nat -> 0 <= t -> distinct l = false -> is_derive (z l) t (- v l t) /\ 0 <= v l t) /\
  (forall l, (l < M)%nat -> distinct l = true -> f l 0 <= f l0 0) /\
  B 0 = 0 /\ forall t, 0 <= t -> is_derive B t (q t).

Hypothesis Flow : theory_flow.

Let length_pos t : 0 < size t.
Proof.
  destruct Flow as [HP [L0 [_ [P0 _]]]]. apply sqrt_lt_R0. apply (Sum_pos M _ l0); [|exact L0|].
  - intros. apply Rle_0_sqr.
  - pose proof (exp_pos (z l0 t)). apply Rmult_lt_0_compat; apply Rmult_lt_0_compat; lra.
Qed.

Lemma dominant l t : (l < M)%nat -> 0 <= t -> distinct l = true -> f l t <= f l0 t.
Proof.
  destruct Flow as [HP [L0 [D0 [P0 [_ [Hd [_ [Dom _]]]]]]]]. intros Ll Ht Dl.
  destruct (Req_dec (P l) 0) as [Z|N].
  { unfold f, share. rewrite Z. unfold Rdiv. rewrite !Rmult_0_l. pose proof (length_pos t).
    pose proof (exp_pos (z l0 t)). apply Rmult_le_pos; [nra|]. apply Rlt_le, Rinv_0_lt_compat. lra. }
  assert (Pl : 0 < P l) by (pose proof (HP l); lra).
  pose proof (conserved (P l) (P l0) (z l) (z l0) q size Pl P0 (fun t _ => length_pos t)
    (fun t Ht => Hd l t Ll Ht Dl) (fun t Ht => Hd l0 t L0 Ht D0) t Ht) as C.
  (* a <= b is 1/b^2 <= 1/a^2 *)
  assert (Inv : forall p y, 0 < p -> / p ^ 2 * exp (- 2 * y) = / (p * exp y) ^ 2).
  { intros p y Hp. replace (- 2 * y) with (- (y + y)) by ring. rewrite exp_Ropp, exp_plus.
    pose proof (exp_pos y). field. lra. }
  rewrite !Inv in C by assumption.
  assert (Start : P l * exp (z l 0) <= P l0 * exp (z l0 0)).
  { pose proof (Dom l Ll Dl) as Q. unfold f, share in Q. pose proof (length_pos 0).
    apply (Rmult_le_compat_r (size 0)) in Q; [|lra].
    replace (P l * exp (z l 0) / size 0 * size 0) with (P l * exp (z l 0)) in Q by (field; lra).
    replace (P l0 * exp (z l0 0) / size 0 * size 0) with (P l0 * exp (z l0 0)) in Q by (field; lra). exact Q. }
  set (a0 := P l * exp (z l 0)) in *. set (b0 := P l0 * exp (z l0 0)) in *.
  assert (0 < a0) by (apply Rmult_lt_0_compat; [exact Pl|apply exp_pos]).
  assert (Q0 : / b0 ^ 2 <= / a0 ^ 2) by (apply Rinv_le_contravar; [apply pow_lt; lra|apply pow_incr; lra]).
  unfold f, share. apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, length_pos|].
  set (a := P l * exp (z l t)) in *. set (b := P l0 * exp (z l0 t)) in *.
  assert (Pa : 0 < a) by (apply Rmult_lt_0_compat; [exact Pl|apply exp_pos]).
  assert (Pb : 0 < b) by (apply Rmult_lt_0_compat; [exact P0|apply exp_pos]).
  destruct (Rle_lt_dec a b) as [|L]; [easy|exfalso].
  assert (/ a ^ 2 < / b ^ 2); [|lra].
  apply Rinv_lt_contravar; [apply Rmult_lt_0_compat; apply pow_lt; lra|]. nra.
Qed.

(** 1/f_l0^2 as a sum over the tokens, each of which falls. *)
Let inverse_square t : / f l0 t ^ 2 = Sum M (fun l => (P l / P l0) ^ 2 * exp (2 * (z l t - z l0 t))).
Proof.
  destruct Flow as [HP [L0 [D0 [P0 _]]]]. unfold f, share. pose proof (length_pos t) as Pn. pose proof (exp_pos (z l0 t)).
  replace (/ (P l0 * exp (z l0 t) / size t) ^ 2) with (/ (P l0 * exp (z l0 t)) ^ 2 * (size t * size t))
    by (field; lra).
  unfold size. rewrite norm_sqr. unfold dot. rewrite <- Sum_scal. apply Sum_ext. intros l _.
  replace (2 * (z l t - z l0 t)) with (z l t + z l t + - (z l0 t + z l0 t)) by ring.
  rewrite exp_plus, exp_Ropp, !exp_plus. field. lra.
Qed.

Lemma f_pos t : 0 < f l0 t.
Proof.
  destruct Flow as [_ [_ [_ [P0 _]]]]. unfold f, share. apply Rdiv_lt_0_compat; [|apply length_pos].
  apply Rmult_lt_0_compat; [exact P0|apply exp_pos].
Qed.

Lemma f_at_most_one t : f l0 t <= 1.
Proof.
  destruct Flow as [HP [L0 [D0 [P0 _]]]]. pose proof (f_pos t) as Pf.
  assert (1 <= / f l0 t ^ 2).
  { rewrite inverse_square.
    apply Rle_trans with ((P l0 / P l0) ^ 2 * exp (2 * (z l0 t - z l0 t))).
    - rewrite Rminus_eq_0, Rmult_0_r, exp_0. right. field. lra.
    - apply (Sum_ge_term M (fun l => (P l / P l0) ^ 2 * exp (2 * (z l t - z l0 t))) l0); [|exact L0].
      intros l _. apply Rmult_le_pos; [apply pow2_ge_0|apply Rlt_le, exp_pos]. }
  assert (f l0 t ^ 2 <= 1).
  { rewrite <- (Rinv_inv (f l0 t ^ 2)), <- Rinv_1. apply Rinv_le_contravar; lra. }
  nra.
Qed.

Lemma f_grows s t : 0 <= s <= t -> f l0 s <= f l0 t.
Proof.
  intros [Hs L]. destruct Flow as [HP [L0 [D0 [P0 [Hq [Hd [Hc _]]]]]]].
  assert (Sq : / f l0 t ^ 2 <= / f l0 s ^ 2).
  { rewrite !inverse_square. apply Sum_le. intros l Ll. apply Rmult_le_compat_l; [apply pow2_ge_0|]. apply exp_le.
    apply Rmult_le_compat_l; [lra|].
    set (d := fun y => if distinct l then q y * f l y ^ 2 else - v l y).
    assert (G : z l0 s - z l s <= z l0 t - z l t); [|lra].
    apply (growing (fun y => z l0 y - z l y) (fun y => q y * f l0 y ^ 2 - d y) s t L).
    - intros y By. apply (is_derive_minus (z l0) (z l)); [apply Hd; try assumption; lra|].
      unfold d. destruct (distinct l) eqn:Dl; [apply Hd; try assumption; lra|apply Hc; try assumption; lra].
    - intros y By. assert (Py : 0 <= y) by lra. pose proof (Hq y Py). pose proof (f_pos y). unfold d.
      destruct (distinct l) eqn:Dl.
      + pose proof (dominant l y Ll Py Dl).
        assert (0 <= f l y).
        { unfold f, share. pose proof (HP l). pose proof (exp_pos (z l y)). apply Rmult_le_pos; [nra|].
          apply Rlt_le, Rinv_0_lt_compat, length_pos. }
        assert (f l y ^ 2 <= f l0 y ^ 2) by (apply pow_incr; lra). nra.
      + destruct (Hc l y Ll Py Dl). assert (0 <= q y * f l0 y ^ 2) by (apply Rmult_le_pos; [lra|apply pow2_ge_0]). lra. }
  pose proof (f_pos s). pose proof (f_pos t).
  destruct (Rle_lt_dec (f l0 s) (f l0 t)) as [|A]; [easy|exfalso].
  assert (/ f l0 s ^ 2 < / f l0 t ^ 2); [|lra].
  apply Rinv_lt_contravar; [apply Rmult_lt_0_compat; apply pow_lt; lra|].
  clear - A H H0. set (x := f l0 t) in *. set (y := f l0 s) in *. nra.
Qed.

Lemma bounds t : 0 <= t ->
  exp (2 * f l0 0 ^ 2 * B t) <= exp (2 * (z l0 t - z l0 0)) <= exp (2 * B t).
Proof.
  intro Ht. pose proof Flow as [HP [L0 [D0 [P0 [Hq [Hd [Hc [_ [B0 HB]]]]]]]]].
  split; apply exp_le.
  - assert (G : z l0 0 - f l0 0 ^ 2 * B 0 <= z l0 t - f l0 0 ^ 2 * B t); [|rewrite B0 in G; lra].
    apply (growing (fun y => z l0 y - f l0 0 ^ 2 * B y) (fun y => q y * f l0 y ^ 2 - f l0 0 ^ 2 * q y) 0 t Ht).
    + intros y By. apply (is_derive_minus (z l0)); [apply Hd; try assumption; lra|].
      apply (is_derive_scal B). apply HB. lra.
    + intros y By. pose proof (Hq y ltac:(lra)). pose proof (f_grows 0 y ltac:(lra)). pose proof (f_pos 0).
      assert (f l0 0 ^ 2 <= f l0 y ^ 2) by (apply pow_incr; lra). nra.
  - assert (G : B 0 - z l0 0 <= B t - z l0 t); [|rewrite B0 in G; lra].
    apply (growing (fun y => B y - z l0 y) (fun y => q y - q y * f l0 y ^ 2) 0 t Ht).
    + intros y By. apply (is_derive_minus B (z l0)); [apply HB; lra|apply Hd; try assumption; lra].
    + intros y By. pose proof (Hq y ltac:(lra)). pose proof (f_at_most_one y). pose proof (f_pos y).
      assert (f l0 y ^ 2 <= 1) by (rewrite <- (pow1 2); apply pow_incr; lra).
      assert (0 <= q y * (1 - f l0 y ^ 2)) by (apply Rmult_le_pos; lra). lra.
Qed.
End OneClass.

(** @statement Scan and Snap: Theorem 3
    @clause the dominant token's attention
    @kind clause
    @hypotheses distinct tokens of n move at q f_nl^2, q >= 0, all others fall or rest; l_0 is distinct,
      P(l_0|n) > 0, and no distinct token has a larger f at the start
    @formula f_nl0(t) never falls
    @note In a class with one token f = 1, so that its derivative is not > 0. *)
Theorem theorem3_dominant_attention :
  forall M l0 P distinct z v q B, theory_flow M l0 P distinct z v q B ->
  forall s t, 0 <= s <= t -> f M P z l0 s <= f M P z l0 t.
Proof. intros M l0 P distinct z v q B H s t. exact (f_grows M l0 P distinct z v q B H s t). Qed.

(** @statement Scan and Snap: Theorem 3
    @clause (12), the bounds of its growth
    @kind clause
    @hypotheses as for the dominant token's attention; B_n is the integral of q = (eta_Z/K) xi_n >= 0 from 0
    @formula exp(2 f_nl0(0)^2 B_n) <= chi_l0(t) <= exp(2 B_n) for every t >= 0
    @note For any q; with q = (eta_Z/K) xi_n of Theorem 2(a) it is the corrected form. *)
Theorem theorem3_bounds :
  forall M l0 P distinct z v q B, theory_flow M l0 P distinct z v q B ->
  forall t, 0 <= t ->
  exp (2 * f M P z l0 0 ^ 2 * B t) <= exp (2 * (z l0 t - z l0 0)) <= exp (2 * B t).
Proof. intros M l0 P distinct z v q B H t. exact (bounds M l0 P distinct z v q B H t). Qed.
