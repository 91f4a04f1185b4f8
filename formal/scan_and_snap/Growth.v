(** The growth h of a class's logits: its steps h* (33), the flow h (44), and its closed form (45).

    M is the number of tokens, which only enters by its value: any real number above one will do. eta is the rate
    eta_Y, K the number of classes. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Calculus.
Open Scope R_scope.

(** The rate of h in (33) and (44). *)
Definition rate (M eta x : R) : R := eta / (M - 1 + exp (M * x)).

(** (44): a solution on t >= 0, from zero. It is continuous where it starts. *)
Definition solves (M eta : R) (h : R -> R) : Prop :=
  h 0 = 0 /\ filterlim h (at_right 0) (locally 0) /\
  forall t, 0 < t -> is_derive h t (rate M eta (h t)).

(** (33): the steps. *)
Fixpoint steps (M eta : R) (s : nat) : R :=
  match s with
  | O => 0
  | S before => steps M eta before + rate M eta (steps M eta before)
  end.

(** The left side of (45). *)
Definition psi (M x : R) : R := exp (M * x) + (M - 1) * (M * x).

Lemma psi_0 M : psi M 0 = 1.
Proof. unfold psi. rewrite Rmult_0_r, exp_0. ring. Qed.

Lemma rate_pos M eta x : 1 < M -> 0 < eta -> 0 < rate M eta x.
Proof.
  intros HM He. unfold rate. pose proof (exp_pos (M * x)). apply Rdiv_lt_0_compat; lra.
Qed.

Lemma is_derive_psi M x : is_derive (psi M) x (M * (M - 1 + exp (M * x))).
Proof. unfold psi. auto_derive; [easy|]. ring. Qed.

(** psi lies above its tangents. *)
Lemma psi_step M a b : 1 < M -> M * (M - 1 + exp (M * a)) * (b - a) <= psi M b - psi M a.
Proof.
  intro HM. unfold psi. pose proof (exp_step_low (M * a) (M * b)). nra.
Qed.

Lemma psi_increasing M a b : 1 < M -> a < b -> psi M a < psi M b.
Proof.
  intros HM L. pose proof (psi_step M a b HM). pose proof (exp_pos (M * a)).
  assert (0 < M * (M - 1 + exp (M * a)) * (b - a)); [|lra].
  repeat apply Rmult_lt_0_compat; lra.
Qed.

Lemma psi_le M a b : 1 < M -> psi M a <= psi M b -> a <= b.
Proof. intros HM L. destruct (Rle_lt_dec a b) as [|G]; [easy|]. pose proof (psi_increasing M b a HM G). lra. Qed.

Lemma psi_lt M a b : 1 < M -> psi M a < psi M b -> a < b.
Proof.
  intros HM L. destruct (Rle_lt_dec b a) as [[G| ->]|]; [|lra|easy]. pose proof (psi_increasing M b a HM G). lra.
Qed.

Lemma psi_injective M a b : 1 < M -> psi M a = psi M b -> a = b.
Proof. intros HM E. apply Rle_antisym; apply (psi_le M); lra. Qed.

(** Every value of (45)'s right side is taken. *)
Lemma psi_onto M c : 1 < M -> {x | psi M x = c}.
Proof.
  intro HM. set (n := (M - 1) * M). assert (Pn : 0 < n) by (unfold n; nra).
  set (low := - (Rabs c + 1) / n). set (high := Rabs c / n).
  assert (Bc : - Rabs c <= c <= Rabs c).
  { split; [pose proof (Rle_abs (- c)); rewrite Rabs_Ropp in H; lra|apply Rle_abs]. }
  pose proof (Rabs_pos c) as Ac.
  assert (El : n * low = - (Rabs c + 1)) by (unfold low; field; lra).
  assert (Eh : n * high = Rabs c) by (unfold high; field; lra).
  assert (Ll : low <= 0) by nra.
  assert (Lh : low <= high) by nra.
  destruct (IVT_cor (fun x => psi M x - c) low high) as [x [_ E]].
  - intro x. apply (is_derive_continuity_pt _ x (M * (M - 1 + exp (M * x)))).
    unfold psi. auto_derive; [easy|]. ring.
  - exact Lh.
  - assert (psi M low - c <= 0).
    { unfold psi. replace ((M - 1) * (M * low)) with (n * low) by (unfold n; ring). rewrite El.
      assert (exp (M * low) <= 1) by (rewrite <- exp_0; apply exp_le; nra). lra. }
    assert (0 <= psi M high - c).
    { unfold psi. replace ((M - 1) * (M * high)) with (n * high) by (unfold n; ring). rewrite Eh.
      pose proof (exp_pos (M * high)). lra. }
    nra.
  - exists x. lra.
Qed.

(** A solution, kept at its start before time 0, is continuous there. *)
Lemma solves_continuous M eta h : solves M eta h -> continuity_pt (fun t => h (Rmax 0 t)) 0.
Proof.
  intros [H0 [Hc _]]. apply continuity_pt_filterlim.
  rewrite Rmax_left, H0 by lra. intros P HP. specialize (Hc P HP).
  destruct Hc as [e He]. destruct (HP) as [e' He'].
  exists e. intros y By. destruct (Rle_lt_dec y 0) as [L|L].
  - rewrite Rmax_left, H0 by lra. apply He'. apply ball_center.
  - rewrite Rmax_right by lra. now apply He.
Qed.

(** @statement Scan and Snap: Lemma 6
    @kind clause
    @hypotheses M > 1 (any real number), eta_Y > 0; h solves dh/dt = eta_Y/(M - 1 + exp(M h)) for t > 0, is 0 at
      0 and continuous there
    @formula exp(M h(t)) + (M - 1) M h(t) = M eta_Y t + 1 for every t >= 0 *)
Theorem lemma6_closed_form :
  forall M eta h, 1 < M -> 0 < eta -> solves M eta h ->
  forall t, 0 <= t -> exp (M * h t) + (M - 1) * (M * h t) = M * eta * t + 1.
Proof.
  intros M eta h HM He Hs t Ht. destruct Hs as [H0 [Hc Hd]] eqn:Es.
  destruct (Req_dec t 0) as [->|Nt]. { rewrite H0, Rmult_0_r, exp_0. ring. }
  set (g := fun s => h (Rmax 0 s)).
  assert (Dg : forall s, 0 < s -> is_derive g s (rate M eta (g s))).
  { intros s Ps. unfold g at 2. rewrite Rmax_right by lra.
    apply (is_derive_ext_loc h); [|now apply Hd].
    exists (mkposreal s Ps). intros y By. unfold g. rewrite Rmax_right; [reflexivity|].
    unfold ball in By; simpl in By; unfold AbsRing_ball, abs, minus, plus, opp in By; simpl in By.
    apply Rabs_def2 in By. lra. }
  set (F := fun s => psi M (g s) - M * eta * s).
  destruct (MVT_gen F 0 t (fun _ => 0)) as [c [_ E]].
  - intros s. rewrite Rmin_left, Rmax_right by lra. intros [Ps _]. unfold F.
    pose proof (is_derive_comp (psi M) g s _ _ (is_derive_psi M (g s)) (Dg s Ps)) as D1.
    assert (D2 : is_derive (fun s => M * eta * s) s (M * eta)) by (auto_derive; [easy|ring]).
    pose proof (is_derive_minus _ _ _ _ _ D1 D2) as D3.
    replace 0 with (minus (scal (rate M eta (g s)) (M * (M - 1 + exp (M * g s)))) (M * eta)); [exact D3|].
    unfold minus, plus, opp, scal; simpl; unfold mult; simpl. unfold rate. pose proof (exp_pos (M * g s)). field. lra.
  - intros s. rewrite Rmin_left, Rmax_right by lra. intros Bs. unfold F.
    apply continuity_pt_minus.
    + apply (continuity_pt_comp g (psi M)).
      * destruct (Req_dec s 0) as [->|Ns]; [now apply (solves_continuous M eta)|].
        apply (is_derive_continuity_pt g s (rate M eta (g s))), Dg. lra.
      * apply (is_derive_continuity_pt _ _ _ (is_derive_psi M (g s))).
    + apply (is_derive_continuity_pt _ s (M * eta)). auto_derive; [easy|ring].
  - unfold F, g in E. rewrite Rmax_right, (Rmax_left 0 0), H0, psi_0 in E by lra. unfold psi in E. lra.
Qed.

(** The closed form solves (44), at all times. *)
Lemma closed_form_derives M eta (h : R -> R) :
  1 < M -> 0 < eta -> (forall t, psi M (h t) = M * eta * t + 1) ->
  forall t, is_derive h t (rate M eta (h t)).
Proof.
  intros HM He Hh t. apply is_derive_Reals. intros eps Pe.
  (* (h(t + s) - h(t))/s is the rate at a point in between *)
  assert (Between : forall s, s <> 0 -> exists x, Rabs (x - h t) <= Rabs s * (eta / (M - 1)) /\
            (h (t + s) - h t) / s = rate M eta x).
  { intros s Ns.
    destruct (MVT_gen (psi M) (h t) (h (t + s)) (fun x => M * (M - 1 + exp (M * x)))) as [x [B E]].
    - intros. apply is_derive_psi.
    - intros x _. apply (is_derive_continuity_pt _ _ _ (is_derive_psi M x)).
    - rewrite !Hh in E. pose proof (exp_pos (M * x)) as Px.
      assert (Eq : h (t + s) - h t = s * rate M eta x).
      { unfold rate. apply (Rmult_eq_reg_l (M * (M - 1 + exp (M * x)))).
        - rewrite <- E. field. lra.
        - apply Rgt_not_eq, Rmult_lt_0_compat; lra. }
      exists x. split.
      + assert (Rabs (x - h t) <= Rabs (h (t + s) - h t)).
        { unfold Rmin, Rmax in B. destruct (Rle_dec (h t) (h (t + s))).
          - rewrite !Rabs_pos_eq by lra. lra.
          - rewrite !Rabs_left1 by lra. lra. }
        apply Rle_trans with (1 := H). rewrite Eq, Rabs_mult.
        apply Rmult_le_compat_l; [apply Rabs_pos|].
        pose proof (rate_pos M eta x HM He). rewrite Rabs_pos_eq by lra. unfold rate.
        apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra.
      + rewrite Eq. field. exact Ns. }
  assert (C : continuity_pt (rate M eta) (h t)).
  { apply (is_derive_continuity_pt _ _ (- eta * (M * exp (M * h t)) / (M - 1 + exp (M * h t)) ^ 2)).
    unfold rate. pose proof (exp_pos (M * h t)). auto_derive; [lra|]. field. lra. }
  destruct (C eps Pe) as [del [Pdel Hdel]].
  assert (Pd : 0 < del * ((M - 1) / eta)) by (apply Rmult_lt_0_compat; [lra|apply Rdiv_lt_0_compat; lra]).
  exists (mkposreal _ Pd). intros s Ns Bs. simpl in Bs.
  destruct (Between s Ns) as [x [Bx ->]].
  destruct (Req_dec x (h t)) as [->|Nx].
  { unfold Rminus. rewrite Rplus_opp_r, Rabs_R0. exact Pe. }
  apply Hdel. split; [split; [exact I|auto]|].
  apply Rle_lt_trans with (1 := Bx).
  replace del with (del * ((M - 1) / eta) * (eta / (M - 1))) by (field; lra).
  apply Rmult_lt_compat_r; [apply Rdiv_lt_0_compat; lra|exact Bs].
Qed.

(** @statement Scan and Snap: Lemma 6
    @kind besides
    @hypotheses M > 1, eta_Y > 0
    @formula there is a solution of (44) on t >= 0 from h(0) = 0; its equation holds for every real t
    @note The paper takes it for granted. *)
Theorem lemma6_existence :
  forall M eta, 1 < M -> 0 < eta ->
  exists h, solves M eta h /\ forall t, is_derive h t (rate M eta (h t)).
Proof.
  intros M eta HM He.
  exists (fun t => proj1_sig (psi_onto M (M * eta * t + 1) HM)).
  set (h := fun t => proj1_sig (psi_onto M (M * eta * t + 1) HM)).
  assert (Hh : forall t, psi M (h t) = M * eta * t + 1).
  { intro t. unfold h. now destruct (psi_onto M (M * eta * t + 1) HM). }
  assert (H0 : h 0 = 0).
  { apply (psi_injective M); [exact HM|]. rewrite Hh, psi_0. ring. }
  pose proof (closed_form_derives M eta h HM He Hh) as D.
  split; [split; [exact H0|split; [|intros u _; apply D]]|exact D].
  assert (C : continuous h 0) by (apply (ex_derive_continuous h 0); eexists; apply D).
  unfold continuous in C. rewrite H0 in C.
  intros P HP. destruct (C P HP) as [e Be]. exists e. intros y By _. now apply Be.
Qed.

(** @statement Scan and Snap: Lemma 6
    @kind besides
    @hypotheses M > 1, eta_Y > 0; h and g are solutions of (44) from 0
    @formula h(t) = g(t) for every t >= 0
    @note The paper takes it for granted. *)
Theorem lemma6_uniqueness :
  forall M eta h g, 1 < M -> 0 < eta -> solves M eta h -> solves M eta g ->
  forall t, 0 <= t -> h t = g t.
Proof.
  intros M eta h g HM He Hh Hg t Ht. apply (psi_injective M); [exact HM|].
  unfold psi. rewrite (lemma6_closed_form M eta h), (lemma6_closed_form M eta g) by assumption. reflexivity.
Qed.

(** For the files that follow: (45) by psi, and signs. *)
Lemma solves_psi M eta h t : 1 < M -> 0 < eta -> solves M eta h -> 0 <= t -> psi M (h t) = M * eta * t + 1.
Proof. intros. unfold psi. now apply lemma6_closed_form. Qed.

Lemma solves_nonneg M eta h t : 1 < M -> 0 < eta -> solves M eta h -> 0 <= t -> 0 <= h t.
Proof.
  intros HM He Hs Ht. apply (psi_le M); [exact HM|].
  rewrite psi_0, (solves_psi M eta h) by assumption. assert (0 <= M * eta * t); [|lra].
  repeat apply Rmult_le_pos; lra.
Qed.

Lemma solves_increasing M eta h s t :
  1 < M -> 0 < eta -> solves M eta h -> 0 <= s < t -> h s < h t.
Proof.
  intros HM He Hs [Ps L]. apply (psi_lt M); [exact HM|].
  rewrite !(solves_psi M eta h) by (assumption || lra).
  assert (M * eta * s < M * eta * t); [|lra]. apply Rmult_lt_compat_l; [nra|exact L].
Qed.
